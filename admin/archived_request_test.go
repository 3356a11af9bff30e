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
	has  map[idem.ExecutionID]string
	late string // what another process writes once, after the next that is erased
	err  error
}

func (s *shelf) Has(_ context.Context, e *idem.ExecutionFacts) (bool, error) {
	_, has := s.has[e.Execution]
	return has && s.err == nil, s.err
}

func (s *shelf) Request(_ context.Context, e *idem.ExecutionFacts) (head, body []byte, err error) {
	text, has := s.has[e.Execution]
	if s.err == nil && !has {
		return nil, nil, idem.ErrNoRequest
	}
	return []byte("HEAD|"), []byte(text), s.err
}

func (s *shelf) Erase(_ context.Context, e *idem.ExecutionFacts) error {
	if s.err == nil {
		delete(s.has, e.Execution)
		if s.late != "" {
			s.has[e.Execution], s.late = s.late, ""
		}
	}
	return s.err
}

// keeper is a process whose route keeps requests.
type keeper struct{ process }

func (*keeper) Routes() []client.RouteRules {
	return []client.RouteRules{{Route: "route", Mode: "enforce", Path: "/", KeepRequests: 86400,
		Answers: []client.RouteAnswer{}}}
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
	a := f.want(200, "", "GET", "/v1/routes", opsToken, "")
	if a.json["routes"].([]any)[0].(map[string]any)["keepRequests"] != 86400.0 {
		t.Errorf("%s", a.body)
	}
}

func TestAJobThatForgetsDeletesTheRequestsThatNoCommandLeadsTo(t *testing.T) {
	archive := &shelf{has: map[idem.ExecutionID]string{}}
	f := newFleet(t, func(o *Options) { o.Archive, o.Process = archive, &keeper{} })
	d := f.run("w", "1")
	f.settle(d, idem.End{Status: idem.Success, Outcome: idem.Executed})
	archive.has[idem.ExecutionID(d.id)] = "body"
	runJobs(t, f.api)
	f.awaitJob(f.begun(`{"kind":"forget","reason":"r","executions":["`+d.id+`"]}`), "it is done", isDone)
	f.want(404, "execution_not_found", "GET", "/v1/executions/"+d.id, opsToken, "")
	if len(archive.has) != 0 {
		t.Errorf("%v", archive.has)
	}
}

func TestAnEventIsErasedWithTheRequestsOfAllItsAttempts(t *testing.T) {
	archive := &shelf{has: map[idem.ExecutionID]string{}}
	f := newFleet(t, func(o *Options) { o.Archive, o.Process = archive, &keeper{} })
	d := f.run("w", "1")
	archive.has[idem.ExecutionID(d.id)], archive.has["another"] = "body", "body"
	path := "/v1/executions/" + d.id + "?reason=r&erase="
	f.want(409, "execution_in_flight", "DELETE", path+"true", opsToken, "")
	if len(archive.has) != 2 {
		t.Error("the request of an event that runs was erased")
	}
	f.settle(d, idem.End{Status: idem.Success, Outcome: idem.Executed})
	f.want(400, "bad_request", "DELETE", path+"yes", opsToken, "")
	archive.err = errors.New("the disk hangs")
	f.want(503, "request_unavailable", "DELETE", path+"true", opsToken, "")
	f.want(200, "", "GET", "/v1/executions/"+d.id, opsToken, "")
	archive.err, archive.late = nil, "body"
	f.want(200, "", "DELETE", path+"true", opsToken, "")
	if line := f.log.audit(t); line["what"] != "execution.forget" || line["after"] != "erased" {
		t.Errorf("%v", line)
	}
	f.want(404, "execution_not_found", "GET", "/v1/executions/"+d.id, opsToken, "")
	if _, still := archive.has["another"]; !still || len(archive.has) != 1 {
		t.Errorf("%v", archive.has)
	}
	f.want(400, "bad_request", "POST", "/v1/jobs", opsToken, `{"kind":"erase","reason":"r","filter":{"route":"route"}}`)
}
