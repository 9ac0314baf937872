package memindex

import (
	"fmt"
	"os"
	"testing"
)

// The test binary runs itself as a child that writes until it is killed, or
// until its disk is full.
const (
	childRole = "MEMINDEX_TEST_ROLE"
	childDir  = "MEMINDEX_TEST_DIR"
	childFrom = "MEMINDEX_TEST_FROM"
)

func TestMain(m *testing.M) {
	var err error
	switch role := os.Getenv(childRole); role {
	case "":
		code := m.Run()
		if benchPath != "" {
			os.RemoveAll(benchPath)
		}
		os.Exit(code)
	case "writer":
		err = writeForEver(os.Getenv(childDir), os.Getenv(childFrom))
	case "full disk":
		err = fillDisk(os.Getenv(childDir))
	default:
		err = fmt.Errorf("unknown role %q", role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
