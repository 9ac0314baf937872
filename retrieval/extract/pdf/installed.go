package pdf

import (
	"context"
	"os/exec"
)

// Recognition says with which languages pages without text are recognised,
// "eng+kor" for example; ok is false if tesseract is not installed.
func Recognition(ctx context.Context) (inUse string, ok bool) {
	program, err := exec.LookPath("tesseract")
	if err != nil {
		return "", false
	}
	return languages(ctx, program), true
}
