package admin

import (
	"context"
	"errors"
	"testing"

	"hooklock/admin/client"
	"hooklock/idem"
)

// shelf is an archive in memory.
type shelf struct {
	has map[idem.ExecutionID]string
	err error
}

func (s *shelf) Has(_ context.Context, e *idem.Entry) (bool, error) {
	_, has := s.has[e.Execution]
	return has && s.err == nil, s.err
}

func (s *shelf) Request(_ context.Context, e *idem.Entry) (head, body []byte, err error) {
	text, has := s.has[e.Execution]
	if s.err == nil && !has {
		return nil, nil, idem.ErrNoRequest
	}
	return []byte("HEAD|"), []byte(text), s.err
}

func (s *shelf) Erase(_ context.Context, e *idem.Entry) error {
	if s.err == nil {
		delete(s.has, e.Execution)
	}
	return s.err
}

// keeper is a process whose route keeps requests.
type keeper struct{ process }

func (*keeper) Routes() []client.RouteRules {
	return []client.RouteRules{{Route: "route", Mode: "enforce", Path: "/", KeepRequests: 86400, Answers: []client.RouteAnswer{}}}
}

func TestAnExecutionSaysWhetherItsRequestIsInTheStore(t *testing.T) {
	archive := &shelf{has: map[idem.ExecutionID]string{}}
	f := newFleet(t, func(o *Options) { o.Archive, o.Process = archive, &keeper{} })
	there, gone := f.run("w", "1").id, f.run("v", "1").id
	archive.has[idem.ExecutionID(there)] = "body"
	stored := func(id, want string) {
		t.Helper()
		if a := f.want(200, "", "GET", "/v1/executions/"+id, opsToken, ""); a.text("requestStored") != want {
			t.Errorf("%s", a.body)
		}
	}
	stored(there, client.StoredYes)
	stored(gone, client.StoredNo)
	if a := f.want(200, "", "GET", "/v1/executions/"+there+"/request", opsToken, ""); string(a.body) != "HEAD|body" {
		t.Errorf("%s", a.body)
	}
	f.want(404, "request_not_kept", "GET", "/v1/executions/"+gone+"/request", opsToken, "")
	archive.err = errors.New("the disk hangs")
	stored(there, client.StoredUnknown)
	f.want(503, "request_unavailable", "GET", "/v1/executions/"+there+"/request", opsToken, "")
	if a := f.want(200, "", "GET", "/v1/routes", opsToken, ""); a.json["routes"].([]any)[0].(map[string]any)["keepRequests"] != 86400.0 {
		t.Errorf("%s", a.body)
	}
}
