//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

const roleEtcd = "etcd"

// serveEtcd is one member with etcd's own defaults, which syncs its disk. catchUp is how many
// entries of its log it keeps in memory; 0 is the default. Its answers are late by far.
func serveEtcd(ctx context.Context, dir string, catchUp uint64, far time.Duration, out io.Writer) error {
	cfg := embed.NewConfig()
	cfg.SnapshotCatchUpEntries = catchUp
	cfg.QuotaBackendBytes = 8 << 30 // a million records are more than the two of its default
	cfg.Dir = dir
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	any := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg.ListenClientUrls, cfg.ListenPeerUrls = any, any
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	defer server.Close()
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
	address := server.Clients[0].Addr().String()
	if far > 0 {
		var wait func()
		if address, wait, err = away(ctx, address, far); err != nil {
			return err
		}
		defer wait()
	}
	if _, err := fmt.Fprintln(out, address); err != nil {
		return err
	}
	select {
	case err := <-server.Err():
		return errors.Join(errors.New("etcd ended"), err)
	case <-ctx.Done():
		return nil
	}
}
