package redistest

import "syscall"

// dieWithParent ends the server with the test, however the test ends.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
