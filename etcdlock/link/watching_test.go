package link

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
)

func TestAWaitThatBeginsAfterItsTokenRanOutIsWoken(t *testing.T) {
	e := etcdtest.StartWithUsers(t, "/locks")
	p, err := OpenPool(&Target{Endpoints: []string{e.Endpoint}, Username: etcdtest.User, Password: etcdtest.Password})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	member := p.members[0]
	client, _, err := p.Current()
	if err != nil {
		t.Fatal(err)
	}
	first := member.openWatcher(client)
	quiet, cancel := context.WithCancel(clientv3.WithRequireLeader(context.Background()))
	defer cancel()
	// it keeps the stream open, and the stream its token
	<-first.Watch(quiet, "/locks/quiet", clientv3.WithCreatedNotify())
	e.ForgetTokens(t)
	watched := make(chan error, 1)
	ctx, over := context.WithTimeout(t.Context(), 30*time.Second)
	defer over()
	go func() {
		for ctx.Err() == nil { // as those who wait do
			news, stop := context.WithCancel(ctx)
			_ = p.Watch(news, OfWaits, Watch{Key: "/locks/news", Opts: []clientv3.OpOption{clientv3.WithRev(1)},
				News: func(*clientv3.Event) {
					stop()
				}})
			stop()
			got, err := e.Client.Get(ctx, "/locks/news")
			if err != nil || len(got.Kvs) > 0 {
				watched <- err
				return
			}
		}
		watched <- ctx.Err()
	}()
	for member.openWatcher(client) == first {
		if Sleep(ctx, 10*time.Millisecond) != nil {
			t.Fatal("no other stream with a new token")
		}
	}
	if _, err := e.Client.Put(ctx, "/locks/news", "x"); err != nil {
		t.Fatal(err)
	}
	if err := <-watched; err != nil {
		t.Fatal(err)
	}
}
