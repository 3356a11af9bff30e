package testkit

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"testing"
)

// The keys of the server that StartS3 starts, and its bucket.
const (
	S3Access = "hooklock-access"
	S3Secret = "hooklock-secret-key"
	S3Bucket = "requests"
)

// s3Module is a module of its own, seen from the folder of any test two folders below the top.
const s3Module = "../../test/s3"

// BuildS3 builds an S3 server into dir. The reason says why its modules cannot be had here; "" = it
// is built.
func BuildS3(dir string) (program, reason string, err error) {
	if out, missing := exec.Command("go", "list", "-C", s3Module, "-deps", ".").CombinedOutput(); missing != nil {
		return "", "the modules of the S3 server cannot be had here, and S3 is not tested: " + string(out), nil //nolint:nilerr // it is the reason
	}
	program = filepath.Join(dir, "s3")
	if out, err := exec.Command("go", "build", "-C", s3Module, "-o", program, ".").CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("build the S3 server: %w\n%s", err, out)
	}
	return program, "", nil
}

// StartS3 starts that server on the folder dir, with an empty bucket.
func StartS3(tb testing.TB, program, dir string, args ...string) (address string) {
	tb.Helper()
	address = FreePort(tb)
	server := Start(tb, Command{
		Program: program, Args: append([]string{"-listen", address, "-dir", dir, "-bucket", S3Bucket}, args...),
		Env: []string{"S3_ACCESS_KEY=" + S3Access, "S3_SECRET_KEY=" + S3Secret},
	})
	Until(tb, "the S3 server listens", func() bool {
		select {
		case <-server.Done():
			tb.Fatalf("the S3 server ended: %s%s", server.Stdout, server.Stderr)
		default:
		}
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return address
}
