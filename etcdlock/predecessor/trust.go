package predecessor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Folder is where the files are, below the data directory.
const Folder = "outcomes"

// Look returns which file system dir is on, or why the locks of files there would not be trusted.
// dir need not exist; it is not made.
func Look(dir string) (fileSystem string, err error) {
	if _, err := bootID(); err != nil {
		return "", err
	}
	if err := checkAskable(dir); err != nil {
		return "", err
	}
	there := dir
	for {
		info, err := os.Stat(there)
		switch {
		case err == nil && !info.IsDir():
			return "", fmt.Errorf("%s is not a directory", there)
		case err == nil:
			return checkUsable(there)
		case !errors.Is(err, fs.ErrNotExist) || filepath.Dir(there) == there:
			return "", err
		}
		there = filepath.Dir(there)
	}
}

// checkUsable returns the file system of a directory, or why it is not used.
func checkUsable(dir string) (fileSystem string, err error) {
	fileSystem, err = checkTrusted(dir)
	if err == nil {
		err = unix.Access(dir, unix.W_OK|unix.X_OK)
	}
	if err != nil {
		return "", fmt.Errorf("use %s: %w", dir, err)
	}
	return fileSystem, nil
}

// checkTrusted returns the file system of a directory, or why its locks are not trusted.
func checkTrusted(dir string) (string, error) {
	name, local, err := fileSystemOf(dir)
	switch {
	case err != nil:
		return "", err
	case !local:
		return "", errForeign(name)
	}
	return name, nil
}

// checkAskable returns why nothing may be asked of the file system of a directory.
func checkAskable(dir string) error {
	if kind, foreign := mountOf(dir); foreign {
		return fmt.Errorf("use %s: %w", dir, errForeign(kind))
	}
	return nil
}

func errForeign(fileSystem string) error {
	return fmt.Errorf("it is on %s, whose file locks may not hold between all that see the file", fileSystem)
}

// readBootID reads the boot ID of the kernel.
func readBootID(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the ID of this boot: %w", err)
	}
	id := strings.TrimSpace(string(text))
	if id == "" {
		return "", fmt.Errorf("read the ID of this boot: %s is empty", path)
	}
	return id, nil
}
