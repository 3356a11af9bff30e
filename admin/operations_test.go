package admin

import (
	"net/http"
	"slices"
	"testing"

	"hooklock/admin/client"
	"hooklock/idem"
)

// description is an endpoint as openapi.json shows it.
type description struct {
	id string // of the operation
	at string // its method and path
	operation
}

// documented is an endpoint with its description.
type documented struct {
	*endpoint
	description
}

// operation describes an endpoint to its callers. What follows from its method and access, as most
// refusals do, is not in it.
type operation struct {
	about       string // the first sentence is the summary
	tag         string
	query, body inputs // what it takes, and nothing else
	// takes is a struct of package client whose fields say what the inputs without about mean.
	takes   any
	example string // of a body
	answers answers
}

// inputs are parameters of a query, or members of a body.
type inputs []input

type input struct {
	name, about string
	kind        any // nil: a text; a bool, a type of package client, or one of the kinds below
}

// Kinds of inputs, beside lists of words. 0 is no bound, and no default.
type (
	number   struct{ least, most, otherwise int }
	length   struct{ least, most int }
	words    []string
	duration string // an example
	list     struct {
		of   any
		most int
	}
	must  struct{ of any } // it has to be given
	ref   string           // a schema by its name
	media string           // of what is not JSON
)

func (m inputs) names() []string {
	var names []string
	for _, one := range m {
		names = append(names, one.name)
	}
	return names
}

// answer is one that an endpoint gives: a value that is written as JSON, another media type, or a
// problem with one of codes.
type answer struct {
	status int
	of     any
	about  string
	codes  []string
	schema string // "" = that of the type
	header string
}

type answers []answer

func yes(status int, of any, about string) answer {
	return answer{status: status, of: of, about: about}
}

// pageOf is the answer of a list, whose order is sorted.
func pageOf(of any, sorted string) answer {
	about := "A page"
	if sorted != "" {
		about += ", " + sorted
	}
	return yes(http.StatusOK, of, about+". It may be short, or empty, and not be the last one: only an empty "+
		"nextCursor says that.")
}

func no(about string, codes ...string) answer {
	return answer{status: refuse(codes[0], "").Status, of: problem{}, about: about, codes: codes}
}

func (a answer) withSchema(schema string) answer { a.schema = schema; return a }
func (a answer) withHeader(header string) answer { a.header = header; return a }

// descriptions returns all endpoints below /v1 with what is said of each.
func descriptions() []documented {
	var all []documented
	for _, group := range []struct {
		tag string
		of  []description
	}{
		{"locks", lockOperations()}, {"executions", listOperations()}, {"executions", operationsOnMany()},
		{"executions", executionOperations()}, {"executions", actionOperations()}, {"callbacks", callbackOperations()},
		{"jobs", jobOperations()}, {"pauses", pauseOperations()}, {"attention", attentionOperations()},
		{"audit", auditOperations()}, {"process", processOperations()}, {"report", reportOperations()},
		{"embedded", embeddedOperations()},
	} {
		for _, d := range group.of {
			d.tag = group.tag
			all = append(all, documented{endpointAt(d.at), d})
		}
	}
	return all
}

// endpointAt returns the endpoint with that method and path.
func endpointAt(at string) *endpoint {
	for _, e := range allEndpoints() {
		if e.method+" "+e.path == at {
			return &e
		}
	}
	panic("no endpoint is at " + at)
}

func TestEachEndpointIsDescribedWithTheParametersThatItAllows(t *testing.T) {
	said := map[string]bool{}
	for _, d := range descriptions() {
		if said[d.at] = true; !slices.Equal(d.query.names(), d.allowed) {
			t.Errorf("%s allows %v, and %v are described", d.at, d.allowed, d.query.names())
		}
	}
	for _, e := range allEndpoints() {
		if !said[e.method+" "+e.path] {
			t.Errorf("%s %s is not described", e.method, e.path)
		}
	}
}

// Members and answers of several endpoints.

func pagedInputs(filters inputs) inputs {
	return append(filters, input{"limit", "", number{1, maxLimit, defaultLimit}},
		input{"cursor", "", nil})
}

func whyRecorded() input {
	return input{"reason", "Why. It goes into the audit log and the record.", must{length{1, maxText}}}
}

// filterOf are the filters of actions on many.
func filterOf() inputs {
	return inputs{
		{"workflow", "", length{1, 0}}, {"route", "", length{1, 0}}, {"state", "", client.ParkState("")},
		{"since", "", length{1, 0}}, {"until", "", length{1, 0}}, {"label", "", length{1, 0}},
	}
}

func fencingToken() input {
	return input{"token", "The fencing token. Only an execution of a route with strategy none, or with a " +
		"lock.limit above 1, has none.", number{}}
}

func noLock() answer {
	return no("The lock is free, or the token may not see its workflow.", "lock_not_found")
}

func noExecution() answer {
	return no("There is no such execution, its record has expired or was forgotten, or the token may not see its "+
		"workflow.", "execution_not_found")
}

func noRequest() answer {
	return no("There is no such execution, or the token may not see it, or its request is not kept.",
		"execution_not_found", "request_not_kept")
}

func noJob() answer {
	return no("There is no such job, or it has ended before the last 100.", "job_not_found")
}

func wrongJobState() answer {
	return no("It does not run (stop), or is not stopped (resume).", "status_changed")
}

func lostLock() answer {
	return no("The lock is no longer its own: stop.", "stale_token", "lock_expired", "lock_lost")
}

func lostCallback() answer { return lostLock().withSchema("CallbackProblem") }

// ofMany describes an action on all executions that match.
func ofMany(about, example string) operation {
	return operation{about: about, example: example, takes: client.Bulk{}, body: inputs{
		{"reason", "", length{1, maxText}}, {"filter", "", must{filterOf()}}, {"dryRun", "", false},
		{"rate", "", number{1, maxRate, defaultRate}}, {"limit", "", number{1, maxLimit, defaultLimit}},
		{"cursor", "", nil},
	}, answers: answers{yes(http.StatusOK, client.BulkResult{}, "What became of a part of them; nextCursor is where "+
		"the next request goes on.")}}
}

func lockOperations() []description {
	return []description{
		{"listLocks", "GET /v1/locks", operation{about: "List locks.",
			takes: client.LockQuery{}, query: pagedInputs(inputs{{"prefix", "", nil}}),
			answers: answers{pageOf(client.LockPage{}, "")}}},
		{"getLock", "GET /v1/locks/{workflow}", operation{about: "Look at a lock.",
			query: inputs{{"execution", "The lock of this execution. Where a route has a lock.limit above 1 each " +
				"has its own; without it the oldest one is shown.", nil}},
			answers: answers{yes(200, client.Lock{}, "The lock."), noLock()}}},
		{"forceReleaseLock", "DELETE /v1/locks/{workflow}", operation{
			about: "Release a lock by force. A running call is closed, its sender gets 503 lock_lost, its " +
				"record is ABORTED by the token's name.",
			query: inputs{{"execution", "The execution that holds the lock.", must{nil}}, whyRecorded()},
			answers: answers{yes(200, client.Execution{}, "The execution that held it, as it ended."), noLock(),
				no("Another execution holds the lock; executionId says which.", "lock_lost"),
			}}},
		{"acquireLock", "POST /v1/locks/{workflow}/acquire", operation{
			about: "Take a lock.", takes: client.AcquireRequest{},
			body: inputs{{"holder", "", length{0, maxWord}}, {"ttl", "", must{duration("10m")}},
				{"wait", "", duration("30s")}},
			example: `{"holder": "backup@db-1", "ttl": "10m", "wait": "0s"}`,
			answers: answers{
				yes(201, client.Acquired{}, "The lock is yours until expiresAt, or for as long as you renew it.").
					withHeader("Location"),
				no("The token is not for this workflow.", "not_found"),
				no("Another one holds it.", "workflow_locked", "lock_wait_timeout").withSchema("ConflictProblem")}}},
		{"renewLock", "POST /v1/locks/{workflow}/renew", operation{
			about: "Keep a lock.",
			body: inputs{{"executionId", "", must{nil}}, {"token", "The fencing token.", must{number{1, 0, 0}}},
				{"ttl", "How long the lock lives if it is not renewed again: at most 24 hours, in whole seconds, " +
					"rounded up. Absent: as when it was taken.", duration("10m")}},
			example: `{"executionId": "exec_mjyg3x6slz3ns4tdjh2hkbwzqi4dr7xk", "token": 42}`,
			answers: answers{yes(200, client.Lock{}, "The lock, with its new end."), lostLock()}}},
		{"releaseLock", "POST /v1/locks/{workflow}/release", operation{
			about:   "Give a lock back.",
			body:    inputs{{"executionId", "", must{nil}}, {"token", "The fencing token.", must{number{1, 0, 0}}}},
			example: `{"executionId": "exec_mjyg3x6slz3ns4tdjh2hkbwzqi4dr7xk", "token": 42}`,
			answers: answers{yes(204, nil, "The lock is free."), lostLock()}}},
		{"listSlots", "GET /v1/slots", operation{
			about: "List the slots of limits that are taken.",
			takes: client.LockQuery{}, query: pagedInputs(inputs{{"prefix", "Only limits that begin with it.", nil},
				{"waiting", "true: the executions that are first of their queue and wait for a slot, instead of " +
					"those that have one.", false}}),
			answers: answers{pageOf(client.SlotPage{}, "")}}},
	}
}

func listOperations() []description {
	return []description{
		{"listExecutions", "GET /v1/executions", operation{
			about: "List executions.",
			takes: client.ExecutionQuery{},
			query: pagedInputs(inputs{
				{"workflow", "", nil}, {"text", "", nil}, {"prefix", "", nil}, {"route", "", nil},
				{"status", "", client.Status("")}, {"outcome", "", client.Outcome("")},
				{"decision", "", allDecisions()},
				{"since", "", nil}, {"until", "", nil}, {"event", "", nil}, {"key", "", nil}, {"id", "", nil},
				{"trace", "", nil}, {"label", "", nil}, {"parked", "", words{"true"}},
				{"state", "", client.ParkState("")}, {"lost", "", words{"true"}},
				{"unseen", "", words(idem.ConcernKind("").Choices())}}),
			answers: answers{pageOf(client.ExecutionPage{},
				"the newest first: those that wait, then those that run, then those that have ended")}}},
	}
}

func operationsOnMany() []description {
	return []description{
		{"runExecutions", "POST /v1/executions/run", ofMany(
			"Try parked executions now. As POST /v1/executions/{id}/run, for all that fit.",
			`{"reason": "repaired", "filter": {"state": "blocked"}, "dryRun": false}`)},
		{"skipExecutions", "POST /v1/executions/skip", ofMany(
			"End parked executions as dead letters. As POST /v1/executions/{id}/skip, for all that fit.",
			`{"reason": "the shop is closed", "filter": {"workflow": "orders/acme"}, "rate": 50}`)},
		{"rerunExecutions", "POST /v1/executions/rerun", ofMany(
			"Let dead letters run again. As POST /v1/executions/{id}/rerun, for all that fit: those of one "+
				"workflow in the order in which they were in its line.",
			`{"reason": "repaired", "filter": {"route": "orders"}, "dryRun": false}`)},
	}
}

func executionOperations() []description {
	return []description{
		{"getExecution", "GET /v1/executions/{id}", operation{
			about: "Look at an execution. The ID may be cut, as long as one execution alone begins so.",
			query: inputs{{"wait", "Answer when the execution changes, at once when it has ended, and after this " +
				"time as it is: a Go duration up to 5m.", nil}},
			answers: answers{yes(200, client.Execution{}, "The execution."), noExecution()}}},
		{"getKeptAnswer", "GET /v1/executions/{id}/answer", operation{
			about: "See the answer that duplicates get.",
			answers: answers{yes(200, client.KeptAnswer{}, "The answer."),
				no("There is no such execution, or no whole answer of it is kept.", "execution_not_found",
					"answer_not_kept"),
			}}},
		{"forgetExecution", "DELETE /v1/executions/{id}", operation{
			about: "Let an event run again. Its record goes, on every replica within 2 s.",
			query: inputs{whyRecorded(),
				{"erase", "true: the kept requests of all attempts and how the event arrived are deleted as well.",
					words{"true"}}},
			answers: answers{yes(200, client.Execution{}, "What was forgotten."), noExecution(),
				no("It has not ended, or the event has run again since.", "execution_in_flight",
					"execution_superseded").withSchema("ConflictProblem")}}},
		{"getRequest", "GET /v1/executions/{id}/request", operation{
			about: "The request of a parked execution or a dead letter. With all that its sender sent, secrets " +
				"too. Each look has a line in the audit log.",
			query: inputs{{"reason", "For the audit log.", length{0, maxText}}},
			answers: answers{
				yes(200, media("message/http"), "Head and body as they came, the body without its transfer coding."),
				noRequest()}}},
	}
}

func actionOperations() []description {
	return []description{
		{"cancelExecution", "POST /v1/executions/{id}/cancel", operation{
			about: "Stop an execution. One that waits is ABORTED at once and never reaches the upstream. The " +
				"call of one that runs is closed. One that is held hears of it at its next guard or heartbeat.",
			body: inputs{whyRecorded(),
				{"final", "The event never runs again: its duplicates get 503 execution_aborted.", false},
				{"ifStatus", "Only where the execution still has this status; otherwise nothing is done. What a " +
					"cancel means depends on it.", active}},
			example: `{"reason": "wrong amount", "final": false}`,
			answers: answers{yes(200, client.Cancelled{}, "It had been asked before."),
				yes(202, client.Cancelled{}, "It is asked."),
				no("It has ended (already_finished), or the request is not what this takes.", "bad_request",
					"already_finished").withSchema("CancelProblem"), noExecution(),
				no("The execution is in another status than ifStatus by now: executionStatus says which. "+
					"Nothing was done.", "status_changed")}}},
		{"runExecution", "POST /v1/executions/{id}/run", operation{
			about: "Try a parked execution now. Whatever it waits for, also a person, and for its whole max_age " +
				"from now. One that is not the first of its line goes on waiting for those before it.",
			body: inputs{whyRecorded()}, example: `{"reason": "repaired"}`,
			answers: answers{yes(200, client.Execution{}, "It is tried now, or next in its line."), noExecution(),
				no("It cannot be done.", "not_parked", "already_finished", "cancel_requested")}}},
		{"skipExecution", "POST /v1/executions/{id}/skip", operation{
			about: "End a parked execution as a dead letter. Its request is kept, and the next one of its line " +
				"runs. The try of one that runs is closed.",
			body: inputs{whyRecorded()}, example: `{"reason": "repaired"}`,
			answers: answers{yes(200, client.Execution{}, "It has ended, now or before."),
				yes(202, client.Execution{}, "It is asked to stop, and ends as a dead letter then."), noExecution(),
				no("It cannot be done.", "not_parked", "already_finished")}}},
		{"rerunExecution", "POST /v1/executions/{id}/rerun", operation{
			about: "Let an event run again. Its event runs again as a new execution, the last of its queue: that " +
				"of a dead letter, or with `again` any that has ended. Until the new one ends, duplicates meet " +
				"that; if it does not settle the event, those of a settled one get the status that they got " +
				"before.",
			body: inputs{whyRecorded(),
				{"again", "Also an event that was settled, or that was not parked: it runs once more, as its next " +
					"attempt. Its route has to keep the requests of all events. Absent: dead letters alone.", false}},
			example: `{"reason": "repaired"}`,
			answers: answers{yes(201, client.Execution{}, "The new execution."), noRequest(),
				no("It cannot be done.", "execution_in_flight", "execution_superseded", "cancel_requested")}}},
	}
}

func callbackOperations() []description {
	return []description{
		{"guardExecution", "POST /v1/executions/{id}/guard", operation{
			about: "May the next step begin? Says whether to go on, and proves the fencing token current. With " +
				"step it notes that this step begins, which ends the step before.",
			body: inputs{fencingToken(), {"step", "", length{0, maxWord}},
				{"plan", "All steps that will be taken. On cancel, those that had not begun become skipped.",
					list{length{1, maxWord}, maxPlan}}},
			example: `{"token": 42, "step": "charge", "plan": ["charge", "ship", "mail"]}`,
			answers: answers{yes(200, ref("Proceed"), "Go on."), noExecution(),
				yes(409, ref("DoNotProceed"), "Stop: it was cancelled, or it has ended."), lostCallback(),
				no("No further step fits.", "too_many_steps")}}},
		{"heartbeatExecution", "POST /v1/executions/{id}/heartbeat", operation{
			about: "Extend a hold.",
			body: inputs{fencingToken(),
				{"ttl", "How long the hold lasts from now on: at most 24 hours, in whole seconds, rounded up. " +
					"Absent: as long as it was asked for.", duration("10m")},
			},
			example: `{"token": 42, "ttl": "30m"}`,
			answers: answers{yes(200, extended{}, "It is held until expiresAt."), noExecution(),
				no("Stop: it was cancelled, or it has ended.", "cancel_requested",
					"already_finished").withSchema("CallbackProblem"),
				lostCallback(),
			}}},
		{"completeExecution", "POST /v1/executions/{id}/complete", operation{
			about: "End a held execution. SUCCESS settles the event: duplicates get the response. After " +
				"FAILED it may run again.",
			body: inputs{fencingToken(), {"status", "", must{words{"SUCCESS", "FAILED"}}},
				{"response", "", ref("FinalResponse")}, {"error", "", client.Failure{}},
			},
			example: `{"token": 42, "status": "SUCCESS", "response": {"status": 200, "body": "{\"charged\":true}",
				"headers": {"Content-Type": "application/json"}}}`,
			answers: answers{yes(200, client.Execution{}, "The execution, ended."), noExecution(),
				no("It has ended.", "already_finished"), lostCallback(),
			}}},
	}
}

func jobOperations() []description {
	return []description{
		{"listJobs", "GET /v1/jobs", operation{
			about: "List jobs. The newest first: those that run, and the last 100 of the others. A token that is " +
				"limited to workflows sees its own.",
			answers: answers{yes(200, client.JobList{}, "The jobs.")}}},
		{"startJob", "POST /v1/jobs", operation{
			about: "Start a job. An action on all executions that match, at most `rate` a second: one replica " +
				"runs it, and another one if that dies, each execution once. It goes on without its client.",
			takes: client.NewJob{},
			body: inputs{{"kind", "", must{client.JobKind("")}}, {"reason", "", length{1, maxText}},
				{"filter", "", append(filterOf(), input{"status", "", words{"SUCCESS", "FAILED", "ABORTED"}})},
				{"executions", "", list{nil, maxJobTargets}}, {"dryRun", "", false},
				{"rate", "", number{1, maxRate, defaultRate}}, {"ifStatus", "", active}, {"again", "", false}},
			example: `{"kind": "rerun", "reason": "repaired", "filter": {"route": "orders", "state": "dead_letter"}}`,
			answers: answers{yes(200, client.Job{}, "A dry run: nothing was started."),
				yes(201, client.Job{}, "It is started.").withHeader("Location")}}},
		{"getJob", "GET /v1/jobs/{job}", operation{about: "Look at a job.",
			answers: answers{yes(200, client.Job{}, "The job."), noJob()}}},
		{"stopJob", "POST /v1/jobs/{job}/stop", operation{
			about:   "Stop a job. What it has let run goes on.",
			body:    inputs{{"reason", "Why. It goes into the audit log.", must{length{1, maxText}}}},
			example: `{"reason": "wrong filter"}`,
			answers: answers{yes(200, client.Job{}, "It is stopped."), noJob(), wrongJobState()}}},
		{"resumeJob", "POST /v1/jobs/{job}/resume", operation{
			about:   "Let a stopped job go on. It goes on where it was.",
			body:    inputs{{"reason", "Why. It goes into the audit log.", must{length{1, maxText}}}},
			example: `{"reason": "repaired"}`,
			answers: answers{yes(200, client.Job{}, "It goes on."), noJob(), wrongJobState()}}},
	}
}

func pauseOperations() []description {
	return []description{
		{"listPauses", "GET /v1/pauses", operation{
			about: "List what is paused. The oldest first, with how far each has come over all replicas. A token " +
				"that is limited to some workflows sees the pauses of patterns within its own.",
			answers: answers{yes(200, client.PauseList{}, "The pauses.")}}},
		{"pause", "POST /v1/pauses", operation{
			about: "Pause a route, or workflows. Nothing of the scope begins any more: arrivals park, wait, or " +
				"are refused with 503 workflow_paused. What had begun goes on. A pause of the same scope is " +
				"replaced. A token that is limited to some workflows may pause patterns within its own.",
			body: inputs{
				{"scope", "route:NAME, or workflow:PATTERN, in which * stands for any characters.",
					must{length{0, maxFilter}}},
				{"reason", "For people.", must{length{1, maxText}}},
				{"for", "How long, from 2 seconds to a year: then it ends by itself. Absent: until somebody " +
					"resumes it.", duration("15m")}},
			example: `{"scope": "workflow:orders/*", "reason": "a migration", "for": "15m"}`,
			answers: answers{
				yes(200, client.Pause{}, "It replaced another one."), yes(201, client.Pause{}, "It is paused.")}}},
		{"getPause", "GET /v1/pauses/{scope}", operation{about: "Look at a pause.",
			answers: answers{yes(200, client.Pause{}, "The pause."),
				no("Nothing of that scope is paused, or the token may not see it.", "pause_not_found")}}},
		{"resume", "DELETE /v1/pauses/{scope}", operation{
			about: "End a pause. What waits goes on, in the order in which it came.",
			query: inputs{{"reason", "For the audit log.", length{0, maxText}}},
			answers: answers{yes(200, client.EndedPause{}, "The pause that was ended."),
				no("Nothing of that scope is paused.", "pause_not_found")}}},
	}
}

func attentionOperations() []description {
	return []description{
		{"listAttention", "GET /v1/attention", operation{
			about: "What needs a person now. Over all replicas, the worst first; equal things are one item. The " +
				"list may be some seconds old. A token that is limited to workflows gets their executions alone, " +
				"and nothing is left out for it. While etcd is away the list has what this replica knows, and " +
				"notKnown says what is missing.",
			answers: answers{yes(200, client.Attention{}, "The list.")}}},
		{"listReplicas", "GET /v1/replicas",
			operation{about: "List the replicas. Those that are alive, and those that ended in the last hour, as " +
				"they have " +
				"described themselves.",
				answers: answers{yes(200, client.ReplicaList{}, "The replicas.")}}},
		{"listSeen", "GET /v1/seen", operation{about: "List what was looked at. Marks of what needs attention, the " +
			"newest first.",
			answers: answers{yes(200, client.SeenList{}, "The marks.")}}},
		{"markSeen", "POST /v1/seen", operation{
			about: "Mark as looked at. What of the concern happened up to then is left out of what needs " +
				"attention, for 30 days; what is newer is not. A later mark stays. Not for tokens that are " +
				"limited to workflows.",
			body: inputs{{"concern", "", must{ref("Concern")}},
				{"until", "A time (RFC 3339), or how long ago. Absent: now.", nil},
				{"reason", "For people.", must{length{1, maxText}}}},
			example: `{"concern": "unknown:orders", "reason": "looked at", "until": "1m"}`,
			answers: answers{
				yes(200, client.SeenMark{}, "It replaced another mark."), yes(201, client.SeenMark{}, "It is marked."),
			}}},
		{"unmarkSeen", "DELETE /v1/seen/{concern}", operation{
			about: "Remove a mark. All of the concern needs attention again.",
			query: inputs{{"reason", "For the audit log.", length{0, maxText}}},
			answers: answers{yes(200, client.SeenMark{}, "The mark that was removed."),
				no("Nothing of it is marked.", "mark_not_found")}}},
	}
}

func auditOperations() []description {
	return []description{
		{"listAudits", "GET /v1/audit", operation{
			about: "Who changed what, why and when. What was done, or refused, with a token, as the audit log has " +
				"it, over all replicas. A token that is limited to workflows sees what was done with these.",
			takes: client.AuditQuery{},
			query: pagedInputs(inputs{{"who", "", nil}, {"what", "", nil}, {"workflow", "", nil}, {"prefix", "", nil},
				{"execution", "", nil}, {"since", "", nil}, {"until", "", nil}}),
			answers: answers{pageOf(client.AuditPage{}, "the newest first")}}},
	}
}

func processOperations() []description {
	return []description{
		{"listBadSignatures", "GET /v1/signatures",
			operation{about: "Deliveries whose signature was not valid. Over all replicas, for 30 days: the newest " +
				"1,000 " +
				"of a route, and 20,000 together. Of a flood few are listed, and the others are counted (more). " +
				"Nothing of signature or secret is in it.",
				takes: client.BadSignatureQuery{},
				query: pagedInputs(inputs{{"route", "", nil}, {"event", "", nil}, {"since", "", nil},
					{"until", "", nil}}),
				answers: answers{pageOf(client.BadSignaturePage{}, "the newest first")}}},
		{"status", "GET /v1/status", operation{about: "How this process is doing. Session, etcd, upstream, " +
			"configuration, and what runs, waits, is " +
			"held and parked, of the process that answers, from what it has seen: nobody is asked for it. It " +
			"answers while etcd is away.",
			answers: answers{yes(200, client.ReplicaStatus{}, "How it is doing.")}}},
		{"listRoutes", "GET /v1/routes",
			operation{about: "What the routes do. What each decision answers, and what is known of the sender.",
				answers: answers{yes(200, client.RouteList{}, "The routes of this process.")}}},
		{"listCounts", "GET /v1/routes/counts",
			operation{about: "What came of the deliveries of each route. Over all replicas and restarts: by the " +
				"minute for " +
				"24 hours, by the hour for 30 days. Another replica's last minute may be missing. Minutes are " +
				"those of the replica that counted.",
				takes: client.CountQuery{},
				query: inputs{{"since", "", nil}, {"until", "", nil}, {"step", "", nil},
					{"latency", "false leaves p50Seconds and p95Seconds of the steps out, which are most of the work; " +
						"those of a route are then of the hours or days that are touched.", words{"true", "false"}}},
				answers: answers{yes(200, client.CountList{}, "What was counted.")}}},
		{"config", "GET /v1/config", operation{about: "The configuration in force. Without secrets; the names of " +
			"their files and variables are in it.",
			query:   inputs{{"origin", "Say where each value comes from.", false}},
			answers: answers{yes(200, client.RunningConfig{}, "The configuration.")}}},
		{"reloadConfig", "POST /v1/config/reload",
			operation{about: "Take over a changed configuration. As SIGHUP does: the file is read again.",
				answers: answers{yes(200, client.Reloaded{}, "It was taken over."),
					no("It was refused, and the old one stays.", "config_refused").withSchema("ConfigProblem")}}},
		{"testNotify", "POST /v1/notify/test",
			operation{about: "Send a test message. One message goes to the receiver that `notify.url_file` names.",
				answers: answers{yes(200, client.NotifyTest{}, "What came of it.")}}},
	}
}

func reportOperations() []description {
	return []description{
		{"report", "GET /v1/report", operation{about: "What mode observe would have stopped. Per route, what was " +
			"found wrong with its deliveries: in " +
			"mode observe they were forwarded all the same. Counted in memory by the process that answers, " +
			"since its start, at most 7 days back.",
			query: inputs{{"since", "A time (RFC 3339), or how long ago (24h). It is rounded down to ten minutes; " +
				"the answer says what was taken.", nil}},
			answers: answers{yes(200, client.Report{}, "What the routes of this process have found.")}}},
		{"suggestions", "GET /v1/suggestions",
			operation{about: "The routes that fit the deliveries which came. For each path that deliveries came to, " +
				"with " +
				"or without a route, what names an event, its workflow, and what the sender changes between " +
				"attempts. Learned by the process that answers, since its start, from the newest 2000 deliveries " +
				"of each path, of which it keeps keyed hashes and no value.",
				query: inputs{{"since", "A time (RFC 3339), or how long ago (24h).", nil},
					{"route", "The name of a suggested route, or its path.", nil}},
				answers: answers{yes(200, client.SuggestionList{}, "What this process suggests.")}}},
	}
}

func embeddedOperations() []description {
	return []description{
		{"backup", "GET /v1/embedded/backup", operation{
			about: "A copy of the embedded etcd. A consistent copy of everything that the embedded etcd of this " +
				"process has, as an etcd snapshot with its checksum at the end; the connection is cut where it is " +
				"not whole. For tokens that may read and write everything. 404 no_embedded_etcd where " +
				"etcd.endpoints are given.",
			answers: answers{yes(200, media("application/octet-stream"), "The snapshot."),
				no("There is no embedded etcd.", "no_embedded_etcd")}}},
	}
}
