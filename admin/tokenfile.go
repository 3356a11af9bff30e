package admin

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// TokenFile is the name of the generated token in the data folder.
const TokenFile = "admin.token"

// LocalToken reads the token that Hooklock generates for itself if none is configured, and creates
// it if it does not exist: dir and in it the file TokenFile, which only the owner may read.
// Processes that start at the same time agree on one token.
func LocalToken(dir string) (string, error) {
	path := filepath.Join(dir, TokenFile)
	token, err := readToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make data_dir: %w", err)
	}
	if err := writeToken(dir, path); err != nil {
		return "", fmt.Errorf("write the admin token: %w", err)
	}
	return readToken(path)
}

// writeToken writes the file under another name first, so that no process ever reads half of it; a
// link does not replace a file that another process has made meanwhile.
func writeToken(dir, path string) error {
	draft, err := os.CreateTemp(dir, ".admin.token-") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(draft.Name())
	_, err = draft.WriteString(newToken() + "\n")
	if err = errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return err
	}
	if err := os.Link(draft.Name(), path); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func newToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never returns an error
	return "hooklock_" + base64.RawURLEncoding.EncodeToString(b[:])
}

// readToken is lookAtToken, and removes the permissions of the group: Kubernetes gives it all of
// them in a volume with an fsGroup.
func readToken(path string) (string, error) {
	token, info, err := lookAtToken(path)
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o070 != 0 {
		if err := os.Chmod(path, 0o600); err != nil {
			return "", fmt.Errorf("keep the admin token from the group: %w", err)
		}
	}
	return token, nil
}

// CheckLocalToken returns why LocalToken would not take the token that is in dir, and changes
// nothing. It is fs.ErrNotExist if there is none yet.
func CheckLocalToken(dir string) error {
	_, _, err := lookAtToken(filepath.Join(dir, TokenFile))
	return err
}

// lookAtToken refuses a file that other users could have read or written: then the token is no
// secret.
func lookAtToken(path string) (string, fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", nil, err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o007 != 0 {
		return "", nil, fmt.Errorf("%s has mode %v: others may know the token; remove the file, and a new one is made",
			path, info.Mode())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", nil, err
	}
	token := strings.TrimSpace(string(text))
	if len(token) < 32 || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", nil, fmt.Errorf("%s holds no token; remove the file, and a new one is made", path)
	}
	return token, info, nil
}
