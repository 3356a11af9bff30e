package admin

import (
	"net/http"

	"hooklock/admin/client"
	"hooklock/idem"
)

// endpoints returns all endpoints below /v1.
func endpoints() []endpoint {
	var all []endpoint
	for _, group := range []struct {
		tag string
		of  []endpoint
	}{
		{"locks", lockEndpoints()}, {"executions", executionLists()}, {"executions", actionsOnMany()},
		{"executions", executionEndpoints()}, {"executions", executionActions()}, {"callbacks", callbackEndpoints()},
		{"jobs", jobEndpoints()}, {"pauses", pauseEndpoints()}, {"attention", attentionEndpoints()},
		{"audit", auditEndpoints()}, {"process", processEndpoints()}, {"report", reportEndpoints()},
		{"embedded", embeddedEndpoints()},
	} {
		for _, e := range group.of {
			e.tag = group.tag
			all = append(all, e)
		}
	}
	return all
}

// Members and answers of several endpoints.

func paged(filters inputs) inputs {
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

func lostCallback() answer { return lostLock().as("CallbackProblem") }

// ofMany describes an action on all executions that match.
func ofMany(about, example string) operation {
	return operation{about: about, example: example, takes: client.Bulk{}, body: inputs{
		{"reason", "", length{1, maxText}}, {"filter", "", must{filterOf()}}, {"dryRun", "", false},
		{"rate", "", number{1, maxRate, defaultRate}}, {"limit", "", number{1, maxLimit, defaultLimit}},
		{"cursor", "", nil},
	}, answers: answers{yes(http.StatusOK, client.BulkResult{}, "What became of a part of them; nextCursor is where "+
		"the next request goes on.")}}
}

func lockEndpoints() []endpoint {
	return []endpoint{
		{"listLocks", "GET", "/v1/locks", forRead, "", (*call).listLocks, operation{about: "List locks.",
			takes: client.LockQuery{}, query: paged(inputs{{"prefix", "", nil}}),
			answers: answers{pageOf(client.LockPage{}, "")}}},
		{"getLock", "GET", "/v1/locks/{workflow}", forRead, "", (*call).getLock, operation{about: "Look at a lock.",
			query: inputs{{"execution", "The lock of this execution. Where a route has a lock.limit above 1 each " +
				"has its own; without it the oldest one is shown.", nil}},
			answers: answers{yes(200, client.Lock{}, "The lock."), noLock()}}},
		{"forceReleaseLock", "DELETE", "/v1/locks/{workflow}", forWrite, "lock.force_release", (*call).forceRelease,
			operation{
				about: "Release a lock by force. A running call is closed, its sender gets 503 lock_lost, its " +
					"record is ABORTED by the token's name.",
				query: inputs{{"execution", "The execution that holds the lock.", must{nil}}, whyRecorded()},
				answers: answers{yes(200, client.Execution{}, "The execution that held it, as it ended."), noLock(),
					no("Another execution holds the lock; executionId says which.", "lock_lost"),
				}}},
		{"acquireLock", "POST", "/v1/locks/{workflow}/acquire", forWrite, "lock.acquire", (*call).acquire, operation{
			about: "Take a lock.", takes: client.AcquireRequest{},
			body: inputs{{"holder", "", length{0, maxWord}}, {"ttl", "", must{duration("10m")}},
				{"wait", "", duration("30s")}},
			example: `{"holder": "backup@db-1", "ttl": "10m", "wait": "0s"}`,
			answers: answers{
				yes(201, client.Acquired{}, "The lock is yours until expiresAt, or for as long as you renew it.").
					with("Location"),
				no("The token is not for this workflow.", "not_found"),
				no("Another one holds it.", "workflow_locked", "lock_wait_timeout").as("ConflictProblem")}}},
		{"renewLock", "POST", "/v1/locks/{workflow}/renew", forWrite, "lock.renew", (*call).renew, operation{
			about: "Keep a lock.",
			body: inputs{{"executionId", "", must{nil}}, {"token", "The fencing token.", must{number{1, 0, 0}}},
				{"ttl", "How long the lock lives if it is not renewed again: at most 24 hours, in whole seconds, " +
					"rounded up. Absent: as when it was taken.", duration("10m")}},
			example: `{"executionId": "exec_mjyg3x6slz3ns4tdjh2hkbwzqi4dr7xk", "token": 42}`,
			answers: answers{yes(200, client.Lock{}, "The lock, with its new end."), lostLock()}}},
		{"releaseLock", "POST", "/v1/locks/{workflow}/release", forWrite, "lock.release", (*call).release, operation{
			about:   "Give a lock back.",
			body:    inputs{{"executionId", "", must{nil}}, {"token", "The fencing token.", must{number{1, 0, 0}}}},
			example: `{"executionId": "exec_mjyg3x6slz3ns4tdjh2hkbwzqi4dr7xk", "token": 42}`,
			answers: answers{yes(204, nil, "The lock is free."), lostLock()}}},
		{"listSlots", "GET", "/v1/slots", forRead, "", (*call).listSlots, operation{
			about: "List the slots of limits that are taken.",
			takes: client.LockQuery{}, query: paged(inputs{{"prefix", "Only limits that begin with it.", nil},
				{"waiting", "true: the executions that are first of their queue and wait for a slot, instead of " +
					"those that have one.", false}}),
			answers: answers{pageOf(client.SlotPage{}, "")}}},
	}
}

func executionLists() []endpoint {
	return []endpoint{
		{"listExecutions", "GET", "/v1/executions", forRead, "", (*call).listExecutions, operation{
			about: "List executions.",
			takes: client.ExecutionQuery{},
			query: paged(inputs{
				{"workflow", "", nil}, {"text", "", nil}, {"prefix", "", nil}, {"route", "", nil},
				{"status", "", client.Status("")}, {"outcome", "", client.Outcome("")}, {"decision", "", decided()},
				{"since", "", nil}, {"until", "", nil}, {"event", "", nil}, {"key", "", nil}, {"id", "", nil},
				{"trace", "", nil}, {"label", "", nil}, {"parked", "", words{"true"}},
				{"state", "", client.ParkState("")}, {"lost", "", words{"true"}},
				{"unseen", "", words(idem.ConcernKind("").Choices())}}),
			answers: answers{pageOf(client.ExecutionPage{},
				"the newest first: those that wait, then those that run, then those that have ended")}}},
	}
}

func actionsOnMany() []endpoint {
	return []endpoint{
		{"runExecutions", "POST", "/v1/executions/run", forWrite, "executions.run", many(runNow()), ofMany(
			"Try parked executions now. As POST /v1/executions/{id}/run, for all that fit.",
			`{"reason": "repaired", "filter": {"state": "blocked"}, "dryRun": false}`)},
		{"skipExecutions", "POST", "/v1/executions/skip", forWrite, "executions.skip", many(skip()), ofMany(
			"End parked executions as dead letters. As POST /v1/executions/{id}/skip, for all that fit.",
			`{"reason": "the shop is closed", "filter": {"workflow": "orders/acme"}, "rate": 50}`)},
		{"rerunExecutions", "POST", "/v1/executions/rerun", forWrite, "executions.rerun", many(rerun()), ofMany(
			"Let dead letters run again. As POST /v1/executions/{id}/rerun, for all that fit: those of one "+
				"workflow in the order in which they were in its line.",
			`{"reason": "repaired", "filter": {"route": "orders"}, "dryRun": false}`)},
	}
}

func executionEndpoints() []endpoint {
	return []endpoint{
		{"getExecution", "GET", "/v1/executions/{id}", forRead, "", (*call).getExecution, operation{
			about: "Look at an execution. The ID may be cut, as long as one execution alone begins so.",
			query: inputs{{"wait", "Answer when the execution changes, at once when it has ended, and after this " +
				"time as it is: a Go duration up to 5m.", nil}},
			answers: answers{yes(200, client.Execution{}, "The execution."), noExecution()}}},
		{"getKeptAnswer", "GET", "/v1/executions/{id}/answer", forBodies, "", (*call).keptAnswer, operation{
			about: "See the answer that duplicates get.",
			answers: answers{yes(200, client.KeptAnswer{}, "The answer."),
				no("There is no such execution, or no whole answer of it is kept.", "execution_not_found",
					"answer_not_kept"),
			}}},
		{"forgetExecution", "DELETE", "/v1/executions/{id}", forWrite, "execution.forget", (*call).forget, operation{
			about: "Let an event run again. Its record goes, on every replica within 2 s.",
			query: inputs{whyRecorded(),
				{"erase", "true: the kept requests of all attempts and how the event arrived are deleted as well.",
					words{"true"}}},
			answers: answers{yes(200, client.Execution{}, "What was forgotten."), noExecution(),
				no("It has not ended, or the event has run again since.", "execution_in_flight",
					"execution_superseded").as("ConflictProblem")}}},
		{"getRequest", "GET", "/v1/executions/{id}/request", forBodies, "execution.request", (*call).request, operation{
			about: "The request of a parked execution or a dead letter. With all that its sender sent, secrets " +
				"too. Each look has a line in the audit log.",
			query: inputs{{"reason", "For the audit log.", length{0, maxText}}},
			answers: answers{
				yes(200, media("message/http"), "Head and body as they came, the body without its transfer coding."),
				noRequest()}}},
	}
}

func executionActions() []endpoint {
	return []endpoint{
		{"cancelExecution", "POST", "/v1/executions/{id}/cancel", forWrite, "execution.cancel", (*call).cancel,
			operation{
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
						"already_finished").as("CancelProblem"), noExecution(),
					no("The execution is in another status than ifStatus by now: executionStatus says which. "+
						"Nothing was done.", "status_changed")}}},
		{"runExecution", "POST", "/v1/executions/{id}/run", forWrite, runNow().change, one(runNow()), operation{
			about: "Try a parked execution now. Whatever it waits for, also a person, and for its whole max_age " +
				"from now. One that is not the first of its line goes on waiting for those before it.",
			body: inputs{whyRecorded()}, example: `{"reason": "repaired"}`,
			answers: answers{yes(200, client.Execution{}, "It is tried now, or next in its line."), noExecution(),
				no("It cannot be done.", "not_parked", "already_finished", "cancel_requested")}}},
		{"skipExecution", "POST", "/v1/executions/{id}/skip", forWrite, skip().change, one(skip()), operation{
			about: "End a parked execution as a dead letter. Its request is kept, and the next one of its line " +
				"runs. The try of one that runs is closed.",
			body: inputs{whyRecorded()}, example: `{"reason": "repaired"}`,
			answers: answers{yes(200, client.Execution{}, "It has ended, now or before."),
				yes(202, client.Execution{}, "It is asked to stop, and ends as a dead letter then."), noExecution(),
				no("It cannot be done.", "not_parked", "already_finished")}}},
		{"rerunExecution", "POST", "/v1/executions/{id}/rerun", forWrite, rerun().change, one(rerun()), operation{
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

func callbackEndpoints() []endpoint {
	return []endpoint{
		{"guardExecution", "POST", "/v1/executions/{id}/guard", forCallback, "execution.guard", (*call).guard,
			operation{
				about: "May the next step begin? Says whether to go on, and proves the fencing token current. With " +
					"step it notes that this step begins, which ends the step before.",
				body: inputs{fencingToken(), {"step", "", length{0, maxWord}},
					{"plan", "All steps that will be taken. On cancel, those that had not begun become skipped.",
						list{length{1, maxWord}, maxPlan}}},
				example: `{"token": 42, "step": "charge", "plan": ["charge", "ship", "mail"]}`,
				answers: answers{yes(200, ref("Proceed"), "Go on."), noExecution(),
					yes(409, ref("DoNotProceed"), "Stop: it was cancelled, or it has ended."), lostCallback(),
					no("No further step fits.", "too_many_steps")}}},
		{"heartbeatExecution", "POST", "/v1/executions/{id}/heartbeat", forCallback, "execution.heartbeat",
			(*call).heartbeat,
			operation{
				about: "Extend a hold.",
				body: inputs{fencingToken(),
					{"ttl", "How long the hold lasts from now on: at most 24 hours, in whole seconds, rounded up. " +
						"Absent: as long as it was asked for.", duration("10m")},
				},
				example: `{"token": 42, "ttl": "30m"}`,
				answers: answers{yes(200, extended{}, "It is held until expiresAt."), noExecution(),
					no("Stop: it was cancelled, or it has ended.", "cancel_requested",
						"already_finished").as("CallbackProblem"),
					lostCallback(),
				}}},
		{"completeExecution", "POST", "/v1/executions/{id}/complete", forCallback, "execution.complete",
			(*call).complete,
			operation{
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

func jobEndpoints() []endpoint {
	return []endpoint{
		{"listJobs", "GET", "/v1/jobs", forRead, "", (*call).listJobs, operation{
			about: "List jobs. The newest first: those that run, and the last 100 of the others. A token that is " +
				"limited to workflows sees its own.",
			answers: answers{yes(200, client.JobList{}, "The jobs.")}}},
		{"startJob", "POST", "/v1/jobs", forWrite, "job.start", (*call).startJob, operation{
			about: "Start a job. An action on all executions that match, at most `rate` a second: one replica " +
				"runs it, and another one if that dies, each execution once. It goes on without its client.",
			takes: client.NewJob{},
			body: inputs{{"kind", "", must{client.JobKind("")}}, {"reason", "", length{1, maxText}},
				{"filter", "", append(filterOf(), input{"status", "", words{"SUCCESS", "FAILED", "ABORTED"}})},
				{"executions", "", list{nil, maxJobTargets}}, {"dryRun", "", false},
				{"rate", "", number{1, maxRate, defaultRate}}, {"ifStatus", "", active}, {"again", "", false}},
			example: `{"kind": "rerun", "reason": "repaired", "filter": {"route": "orders", "state": "dead_letter"}}`,
			answers: answers{yes(200, client.Job{}, "A dry run: nothing was started."),
				yes(201, client.Job{}, "It is started.").with("Location")}}},
		{"getJob", "GET", "/v1/jobs/{job}", forRead, "", (*call).getJob, operation{about: "Look at a job.",
			answers: answers{yes(200, client.Job{}, "The job."), noJob()}}},
		{"stopJob", "POST", "/v1/jobs/{job}/stop", forWrite, "job.stop", (*call).stopJob, operation{
			about:   "Stop a job. What it has let run goes on.",
			body:    inputs{{"reason", "Why. It goes into the audit log.", must{length{1, maxText}}}},
			example: `{"reason": "wrong filter"}`,
			answers: answers{yes(200, client.Job{}, "It is stopped."), noJob(), wrongJobState()}}},
		{"resumeJob", "POST", "/v1/jobs/{job}/resume", forWrite, "job.resume", (*call).resumeJob, operation{
			about:   "Let a stopped job go on. It goes on where it was.",
			body:    inputs{{"reason", "Why. It goes into the audit log.", must{length{1, maxText}}}},
			example: `{"reason": "repaired"}`,
			answers: answers{yes(200, client.Job{}, "It goes on."), noJob(), wrongJobState()}}},
	}
}

func pauseEndpoints() []endpoint {
	return []endpoint{
		{"listPauses", "GET", "/v1/pauses", forRead, "", (*call).listPauses, operation{
			about: "List what is paused. The oldest first, with how far each has come over all replicas. A token " +
				"that is limited to some workflows sees the pauses of patterns within its own.",
			answers: answers{yes(200, client.PauseList{}, "The pauses.")}}},
		{"pause", "POST", "/v1/pauses", forWrite, "pause", (*call).pause, operation{
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
		{"getPause", "GET", "/v1/pauses/{scope}", forRead, "", (*call).getPause, operation{about: "Look at a pause.",
			answers: answers{yes(200, client.Pause{}, "The pause."),
				no("Nothing of that scope is paused, or the token may not see it.", "pause_not_found")}}},
		{"resume", "DELETE", "/v1/pauses/{scope}", forWrite, "resume", (*call).resume, operation{
			about: "End a pause. What waits goes on, in the order in which it came.",
			query: inputs{{"reason", "For the audit log.", length{0, maxText}}},
			answers: answers{yes(200, client.EndedPause{}, "The pause that was ended."),
				no("Nothing of that scope is paused.", "pause_not_found")}}},
	}
}

func attentionEndpoints() []endpoint {
	return []endpoint{
		{"listAttention", "GET", "/v1/attention", forRead, "", (*call).attention, operation{
			about: "What needs a person now. Over all replicas, the worst first; equal things are one item. The " +
				"list may be some seconds old. A token that is limited to workflows gets their executions alone, " +
				"and nothing is left out for it. While etcd is away the list has what this replica knows, and " +
				"notKnown says what is missing.",
			answers: answers{yes(200, client.Attention{}, "The list.")}}},
		{"listReplicas", "GET", "/v1/replicas", forRead, "", (*call).replicas, operation{whole: "the list of replicas",
			about: "List the replicas. Those that are alive, and those that ended in the last hour, as they have " +
				"described themselves.",
			answers: answers{yes(200, client.ReplicaList{}, "The replicas.")}}},
		{"listSeen", "GET", "/v1/seen", forRead, "", (*call).listSeen, operation{whole: "what was looked at",
			about:   "List what was looked at. Marks of what needs attention, the newest first.",
			answers: answers{yes(200, client.SeenList{}, "The marks.")}}},
		{"markSeen", "POST", "/v1/seen", forWrite, "seen", (*call).markSeen, operation{
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
		{"unmarkSeen", "DELETE", "/v1/seen/{concern}", forWrite, "unseen", (*call).unmarkSeen, operation{
			about: "Remove a mark. All of the concern needs attention again.",
			query: inputs{{"reason", "For the audit log.", length{0, maxText}}},
			answers: answers{yes(200, client.SeenMark{}, "The mark that was removed."),
				no("Nothing of it is marked.", "mark_not_found")}}},
	}
}

func auditEndpoints() []endpoint {
	return []endpoint{
		{"listAudits", "GET", "/v1/audit", forRead, "", (*call).listAudits, operation{
			about: "Who changed what, why and when. What was done, or refused, with a token, as the audit log has " +
				"it, over all replicas. A token that is limited to workflows sees what was done with these.",
			takes: client.AuditQuery{},
			query: paged(inputs{{"who", "", nil}, {"what", "", nil}, {"workflow", "", nil}, {"prefix", "", nil},
				{"execution", "", nil}, {"since", "", nil}, {"until", "", nil}}),
			answers: answers{pageOf(client.AuditPage{}, "the newest first")}}},
	}
}

func processEndpoints() []endpoint {
	return []endpoint{
		{"listBadSignatures", "GET", "/v1/signatures", forRead, "", (*call).listBadSignatures,
			operation{whole: "the list of bad signatures",
				about: "Deliveries whose signature was not valid. Over all replicas, for 30 days: the newest 1,000 " +
					"of a route, and 20,000 together. Of a flood few are listed, and the others are counted (more). " +
					"Nothing of signature or secret is in it.",
				takes:   client.BadSignatureQuery{},
				query:   paged(inputs{{"route", "", nil}, {"event", "", nil}, {"since", "", nil}, {"until", "", nil}}),
				answers: answers{pageOf(client.BadSignaturePage{}, "the newest first")}}},
		{"status", "GET", "/v1/status", forRead, "", (*call).replicaStatus, operation{whole: "the status",
			about: "How this process is doing. Session, etcd, upstream, configuration, and what runs, waits, is " +
				"held and parked, of the process that answers, from what it has seen: nobody is asked for it. It " +
				"answers while etcd is away.",
			answers: answers{yes(200, client.ReplicaStatus{}, "How it is doing.")}}},
		{"listRoutes", "GET", "/v1/routes", forRead, "", (*call).routes, operation{whole: "what the routes do",
			about:   "What the routes do. What each decision answers, and what is known of the sender.",
			answers: answers{yes(200, client.RouteList{}, "The routes of this process.")}}},
		{"listCounts", "GET", "/v1/routes/counts", forRead, "", (*call).counts, operation{whole: "what is counted",
			about: "What came of the deliveries of each route. Over all replicas and restarts: by the minute for " +
				"24 hours, by the hour for 30 days. Another replica's last minute may be missing. Minutes are " +
				"those of the replica that counted.",
			takes: client.CountQuery{},
			query: inputs{{"since", "", nil}, {"until", "", nil}, {"step", "", nil},
				{"latency", "false leaves p50Seconds and p95Seconds of the steps out, which are most of the work; " +
					"those of a route are then of the hours or days that are touched.", words{"true", "false"}}},
			answers: answers{yes(200, client.CountList{}, "What was counted.")}}},
		{"config", "GET", "/v1/config", forRead, "", (*call).config, operation{whole: "the configuration",
			about:   "The configuration in force. Without secrets; the names of their files and variables are in it.",
			query:   inputs{{"origin", "Say where each value comes from.", false}},
			answers: answers{yes(200, client.RunningConfig{}, "The configuration.")}}},
		{"reloadConfig", "POST", "/v1/config/reload", forWrite, ReloadConfig, (*call).reload,
			operation{whole: "the configuration",
				about: "Take over a changed configuration. As SIGHUP does: the file is read again.",
				answers: answers{yes(200, client.Reloaded{}, "It was taken over."),
					no("It was refused, and the old one stays.", "config_refused").as("ConfigProblem")}}},
		{"testNotify", "POST", "/v1/notify/test", forWrite, "notify.test", (*call).testNotify,
			operation{whole: "what is told of",
				about:   "Send a test message. One message goes to the receiver that `notify.url_file` names.",
				answers: answers{yes(200, client.NotifyTest{}, "What came of it.")}}},
	}
}

func reportEndpoints() []endpoint {
	return []endpoint{
		{"report", "GET", "/v1/report", forRead, "", (*call).report, operation{whole: "the report",
			about: "What mode observe would have stopped. Per route, what was found wrong with its deliveries: in " +
				"mode observe they were forwarded all the same. Counted in memory by the process that answers, " +
				"since its start, at most 7 days back.",
			query: inputs{{"since", "A time (RFC 3339), or how long ago (24h). It is rounded down to ten minutes; " +
				"the answer says what was taken.", nil}},
			answers: answers{yes(200, client.Report{}, "What the routes of this process have found.")}}},
		{"suggestions", "GET", "/v1/suggestions", forRead, "", (*call).suggestions,
			operation{whole: "what is suggested",
				about: "The routes that fit the deliveries which came. For each path that deliveries came to, with " +
					"or without a route, what names an event, its workflow, and what the sender changes between " +
					"attempts. Learned by the process that answers, since its start, from the newest 2000 deliveries " +
					"of each path, of which it keeps keyed hashes and no value.",
				query: inputs{{"since", "A time (RFC 3339), or how long ago (24h).", nil},
					{"route", "The name of a suggested route, or its path.", nil}},
				answers: answers{yes(200, client.SuggestionList{}, "What this process suggests.")}}},
	}
}

func embeddedEndpoints() []endpoint {
	return []endpoint{
		{"backup", "GET", "/v1/embedded/backup", forWrite, "embedded.backup", (*call).backup, operation{
			about: "A copy of the embedded etcd. A consistent copy of everything that the embedded etcd of this " +
				"process has, as an etcd snapshot with its checksum at the end; the connection is cut where it is " +
				"not whole. For tokens that may read and write everything. 404 no_embedded_etcd where " +
				"etcd.endpoints are given.",
			answers: answers{yes(200, media("application/octet-stream"), "The snapshot."),
				no("There is no embedded etcd.", "no_embedded_etcd")}}},
	}
}
