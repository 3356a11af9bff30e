//go:build linux

package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// puts are the least that etcd can do for an event that is written down before it runs and after
// it: two puts of as many bytes as a lock and a record have, one after the other.
type puts struct {
	client *clientv3.Client
	value  string
}

// storedSize is about what a lock or a record has, in bytes.
const storedSize = 450

func dialPuts(endpoint string) (*puts, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	return &puts{client, strings.Repeat("x", storedSize)}, nil
}

func (p *puts) close() { _ = p.client.Close() }

// put is the n-th event of a connection.
func (p *puts) put(s *sender, n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, key := range []string{"/bench/locks/flow-" + strconv.Itoa(s.index), "/bench/keys/" + s.event(n)} {
		if _, err := p.client.Put(ctx, key, p.value); err != nil {
			return err
		}
	}
	return nil
}
