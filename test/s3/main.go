// Command s3 is a real S3 server on one folder, for tests: versitygw, in a module of its own, so
// that what it brings along is no part of Hooklock's.
//
//	s3 -listen 127.0.0.1:7070 -dir DIR -bucket requests      # the keys are in S3_ACCESS_KEY and S3_SECRET_KEY
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "s3: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	listen := flag.String("listen", "", "host:port")
	dir := flag.String("dir", "", "the folder that objects are kept in, which is there")
	bucket := flag.String("bucket", "", "a bucket that is made")
	certFile := flag.String("cert", "", "certificate, PEM; empty: plain HTTP")
	keyFile := flag.String("key", "", "its private key, PEM")
	flag.Parse()
	if *listen == "" || *dir == "" || *bucket == "" {
		return errors.New("needs -listen, -dir and -bucket")
	}
	objects, metadata := filepath.Join(*dir, "objects"), filepath.Join(*dir, "metadata")
	for _, folder := range []string{filepath.Join(objects, *bucket), metadata} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	kept, err := meta.NewSideCar(metadata) // extended attributes are not everywhere
	if err != nil {
		return err
	}
	files, err := posix.New(objects, kept, posix.PosixOpts{SideCarDir: metadata})
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(ctx, files, &embedgw.Config{
		RootUserAccess: os.Getenv("S3_ACCESS_KEY"), RootUserSecret: os.Getenv("S3_SECRET_KEY"), Region: "us-east-1",
		Ports: []string{*listen}, CertFile: *certFile, KeyFile: *keyFile,
		MaxConnections: 1000, MaxRequests: 1000, MultipartMaxParts: 10000, KeepAlive: true, Quiet: true,
		HealthPath: "/health",
	})
}
