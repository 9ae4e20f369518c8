package vm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// BuildKsnoop builds the static binary of ksnoop in a directory and returns its path.
func BuildKsnoop(ctx context.Context, dir string) (string, error) {
	file := filepath.Join(dir, "ksnoop")
	build := exec.CommandContext(ctx, "go", "build", "-o", file, "github.com/ksnoop/ksnoop/cmd/ksnoop")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("build ksnoop: %w", err)
	}
	return file, nil
}
