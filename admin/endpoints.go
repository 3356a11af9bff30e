package admin

import "slices"

// endpoints returns all endpoints below /v1. operations_test.go describes each, for openapi.json.
func endpoints() []endpoint {
	return slices.Concat(lockEndpoints(), executionEndpoints(), callbackEndpoints(), otherEndpoints())
}

// paged are the parameters of a list with these filters.
func paged(filters ...string) []string { return append(filters, "limit", "cursor") }

func lockEndpoints() []endpoint {
	return []endpoint{
		{"GET", "/v1/locks", forRead, "", (*call).listLocks, "", paged("prefix")},
		{"GET", "/v1/locks/{workflow}", forRead, "", (*call).getLock, "", []string{"execution"}},
		{"DELETE", "/v1/locks/{workflow}", forWrite, "lock.force_release",
			(*call).forceRelease, "", []string{"execution", "reason"}},
		{"POST", "/v1/locks/{workflow}/acquire", forWrite, "lock.acquire", (*call).acquire, "", nil},
		{"POST", "/v1/locks/{workflow}/renew", forWrite, "lock.renew", (*call).renew, "", nil},
		{"POST", "/v1/locks/{workflow}/release", forWrite, "lock.release", (*call).release, "", nil},
		{"GET", "/v1/slots", forRead, "", (*call).listSlots, "", paged("prefix", "waiting")},
	}
}

func executionEndpoints() []endpoint {
	return []endpoint{
		{"GET", "/v1/executions", forRead, "",
			(*call).listExecutions, "", paged("workflow", "text", "prefix", "route", "status", "outcome", "decision",
				"since", "until", "event", "key", "id", "trace", "label", "parked", "state", "lost", "unseen")},
		{"POST", "/v1/executions/run", forWrite, "executions.run", many(runNow()), "", nil},
		{"POST", "/v1/executions/skip", forWrite, "executions.skip", many(skip()), "", nil},
		{"POST", "/v1/executions/rerun", forWrite, "executions.rerun", many(rerun()), "", nil},
		{"GET", "/v1/executions/{id}", forRead, "", (*call).getExecution, "", []string{"wait"}},
		{"GET", "/v1/executions/{id}/answer", forBodies, "", (*call).keptAnswer, "", nil},
		{"DELETE", "/v1/executions/{id}", forWrite, "execution.forget",
			(*call).forget, "", []string{"reason", "erase"}},
		{"GET", "/v1/executions/{id}/request", forBodies, "execution.request",
			(*call).request, "", []string{"reason"}},
		{"POST", "/v1/executions/{id}/cancel", forWrite, "execution.cancel", (*call).cancel, "", nil},
		{"POST", "/v1/executions/{id}/run", forWrite, runNow().change, one(runNow()), "", nil},
		{"POST", "/v1/executions/{id}/skip", forWrite, skip().change, one(skip()), "", nil},
		{"POST", "/v1/executions/{id}/rerun", forWrite, rerun().change, one(rerun()), "", nil},
	}
}

func callbackEndpoints() []endpoint {
	return []endpoint{
		{"POST", "/v1/executions/{id}/guard", forCallback, "execution.guard", (*call).guard, "", nil},
		{"POST", "/v1/executions/{id}/heartbeat", forCallback, "execution.heartbeat", (*call).heartbeat, "", nil},
		{"POST", "/v1/executions/{id}/complete", forCallback, "execution.complete", (*call).complete, "", nil},
	}
}

func otherEndpoints() []endpoint {
	return []endpoint{
		{"GET", "/v1/jobs", forRead, "", (*call).listJobs, "", nil},
		{"POST", "/v1/jobs", forWrite, "job.start", (*call).startJob, "", nil},
		{"GET", "/v1/jobs/{job}", forRead, "", (*call).getJob, "", nil},
		{"POST", "/v1/jobs/{job}/stop", forWrite, "job.stop", (*call).stopJob, "", nil},
		{"POST", "/v1/jobs/{job}/resume", forWrite, "job.resume", (*call).resumeJob, "", nil},
		{"GET", "/v1/pauses", forRead, "", (*call).listPauses, "", nil},
		{"POST", "/v1/pauses", forWrite, "pause", (*call).pause, "", nil},
		{"GET", "/v1/pauses/{scope}", forRead, "", (*call).getPause, "", nil},
		{"DELETE", "/v1/pauses/{scope}", forWrite, "resume", (*call).resume, "", []string{"reason"}},
		{"GET", "/v1/attention", forRead, "", (*call).attention, "", nil},
		{"GET", "/v1/replicas", forRead, "", (*call).replicas, "the list of replicas", nil},
		{"GET", "/v1/seen", forRead, "", (*call).listSeen, "what was looked at", nil},
		{"POST", "/v1/seen", forWrite, "seen", (*call).markSeen, "", nil},
		{"DELETE", "/v1/seen/{concern}", forWrite, "unseen", (*call).unmarkSeen, "", []string{"reason"}},
		{"GET", "/v1/audit", forRead, "",
			(*call).listAudits, "", paged("who", "what", "workflow", "prefix", "execution", "since", "until")},
		{"GET", "/v1/signatures", forRead, "",
			(*call).listBadSignatures, "the list of bad signatures", paged("route", "event", "since", "until")},
		{"GET", "/v1/status", forRead, "", (*call).replicaStatus, "the status", nil},
		{"GET", "/v1/routes", forRead, "", (*call).routes, "what the routes do", nil},
		{"GET", "/v1/routes/counts", forRead, "",
			(*call).counts, "what is counted", []string{"since", "until", "step", "latency"}},
		{"GET", "/v1/config", forRead, "", (*call).config, "the configuration", []string{"origin"}},
		{"POST", "/v1/config/reload", forWrite, ReloadConfig, (*call).reload, "the configuration", nil},
		{"POST", "/v1/notify/test", forWrite, "notify.test", (*call).testNotify, "what is told of", nil},
		{"GET", "/v1/report", forRead, "", (*call).report, "the report", []string{"since"}},
		{"GET", "/v1/suggestions", forRead, "", (*call).suggestions, "what is suggested", []string{"since", "route"}},
		{"GET", "/v1/embedded/backup", forWrite, "embedded.backup", (*call).backup, "", nil},
	}
}
