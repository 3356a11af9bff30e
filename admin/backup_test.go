package admin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

func backups(of func() io.Reader) func(*Options) {
	return func(o *Options) {
		o.Backup = func(context.Context) (io.ReadCloser, error) { return io.NopCloser(of()), nil }
	}
}

func TestABackupNeedsATokenThatMaySeeAndChangeEverything(t *testing.T) {
	r := newRig(t, unreachable{}, backups(func() io.Reader { return strings.NewReader("snapshot") }))
	r.want(401, "unauthorized", "GET", "/v1/embedded/backup", "", "")
	r.want(403, "forbidden", "GET", "/v1/embedded/backup", readToken1, "")
	r.want(403, "forbidden", "GET", "/v1/embedded/backup", writeToken1, "")
	r.want(403, "forbidden", "GET", "/v1/embedded/backup", stripeToken, "")
	if line := r.log.audit(t); line["what"] != "embedded.backup" || line["who"] != "stripe" ||
		line["result"] != "refused" {
		t.Errorf("%v", line)
	}
	r.want(400, "bad_request", "GET", "/v1/embedded/backup?file=x", opsToken, "")
	a := r.ask("GET", "/v1/embedded/backup", opsToken, "")
	if a.StatusCode != 200 || string(a.body) != "snapshot" {
		t.Errorf("%d %q", a.StatusCode, a.body)
	}
	if line := r.log.audit(t); line["what"] != "embedded.backup" || line["who"] != "ops" || line["result"] != "done" {
		t.Errorf("%v", line)
	}
}

func TestWithoutAnEmbeddedEtcdThereIsNoBackup(t *testing.T) {
	r := newRig(t, unreachable{}, nil)
	if a := r.want(404, "no_embedded_etcd", "GET", "/v1/embedded/backup", opsToken,
		""); !strings.Contains(a.text("detail"), "etcdctl snapshot save") {
		t.Errorf("%s", a.body)
	}
}

func TestABackupThatBreaksIsNotTakenForAWholeOne(t *testing.T) {
	r := newRig(t, unreachable{}, backups(func() io.Reader {
		return io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<16)),
			iotest.ErrReader(errors.New("disk failed")))
	}))
	q, err := http.NewRequestWithContext(t.Context(), "GET", r.http.URL+"/v1/embedded/backup", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+opsToken)
	res, err := r.http.Client().Do(q)
	if err == nil {
		defer res.Body.Close()
		_, err = io.ReadAll(res.Body)
	}
	if err == nil {
		t.Error("it ended as a whole one does")
	}
	if line := r.log.audit(t); line["result"] != "unknown" {
		t.Errorf("%v", line)
	}
	r = newRig(t, unreachable{}, func(o *Options) {
		o.Backup = func(context.Context) (io.ReadCloser, error) { return nil, errors.New("no") }
	})
	r.want(503, "store_unavailable", "GET", "/v1/embedded/backup", opsToken, "")
}
