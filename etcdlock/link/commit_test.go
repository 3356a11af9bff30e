package link

import (
	"context"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestAClientThatCannotCommitIsRefusedAtTheStart(t *testing.T) {
	_, err := OpenPool(&Target{Client: clientv3.NewCtxClient(context.Background())})
	if err == nil || !strings.Contains(err.Error(), "embedded") {
		t.Fatalf("%v", err)
	}
}
