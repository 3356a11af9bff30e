package admin

import "slices"

// allEndpoints returns all endpoints below /v1. operations_test.go describes each, for
// openapi.json.
func allEndpoints() []endpoint {
	return slices.Concat(lockEndpoints(), executionEndpoints(), callbackEndpoints(), otherEndpoints())
}

// withPaging are the parameters of a list with these filters.
func withPaging(filters ...string) []string { return append(filters, "limit", "cursor") }

func lockEndpoints() []endpoint {
	return []endpoint{
		{"GET", "/v1/locks", forRead, "", (*call).listLocks, "", withPaging("prefix")},
		{"GET", "/v1/locks/{workflow}", forRead, "", (*call).getLock, "", []string{"execution"}},
		{"DELETE", "/v1/locks/{workflow}", forWrite, "lock.force_release",
			(*call).forceRelease, "", []string{"execution", "reason"}},
		{"POST", "/v1/locks/{workflow}/acquire", forWrite, "lock.acquire", (*call).acquireLock, "", nil},
		{"POST", "/v1/locks/{workflow}/renew", forWrite, "lock.renew", (*call).renewLock, "", nil},
		{"POST", "/v1/locks/{workflow}/release", forWrite, "lock.release", (*call).releaseLock, "", nil},
		{"GET", "/v1/slots", forRead, "", (*call).listSlots, "", withPaging("prefix", "waiting")},
	}
}

func executionEndpoints() []endpoint {
	return []endpoint{
		{"GET", "/v1/executions", forRead, "",
			(*call).listExecutions, "", withPaging("workflow", "text", "prefix", "route", "status", "outcome",
				"decision",
				"since", "until", "event", "key", "id", "trace", "label", "parked", "state", "lost", "unseen")},
		{"POST", "/v1/executions/run", forWrite, "executions.run", forMany(runNow()), "", nil},
		{"POST", "/v1/executions/skip", forWrite, "executions.skip", forMany(skipAction()), "", nil},
		{"POST", "/v1/executions/rerun", forWrite, "executions.rerun", forMany(rerunAction()), "", nil},
		{"GET", "/v1/executions/{id}", forRead, "", (*call).getExecution, "", []string{"wait"}},
		{"GET", "/v1/executions/{id}/answer", forBodies, "", (*call).keptAnswer, "", nil},
		{"DELETE", "/v1/executions/{id}", forWrite, "execution.forget",
			(*call).forgetExecution, "", []string{"reason", "erase"}},
		{"GET", "/v1/executions/{id}/request", forBodies, "execution.request",
			(*call).sendStoredRequest, "", []string{"reason"}},
		{"POST", "/v1/executions/{id}/cancel", forWrite, "execution.cancel", (*call).cancelExecution, "", nil},
		{"POST", "/v1/executions/{id}/run", forWrite, runNow().change, forOne(runNow()), "", nil},
		{"POST", "/v1/executions/{id}/skip", forWrite, skipAction().change, forOne(skipAction()), "", nil},
		{"POST", "/v1/executions/{id}/rerun", forWrite, rerunAction().change, forOne(rerunAction()), "", nil},
	}
}

func callbackEndpoints() []endpoint {
	return []endpoint{
		{"POST", "/v1/executions/{id}/guard", forCallback, "execution.guard", (*call).guardStep, "", nil},
		{"POST", "/v1/executions/{id}/heartbeat", forCallback, "execution.heartbeat", (*call).renewHold, "", nil},
		{"POST", "/v1/executions/{id}/complete", forCallback, "execution.complete", (*call).completeExecution, "", nil},
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
		{"POST", "/v1/pauses", forWrite, "pause", (*call).addPause, "", nil},
		{"GET", "/v1/pauses/{scope}", forRead, "", (*call).getPause, "", nil},
		{"DELETE", "/v1/pauses/{scope}", forWrite, "resume", (*call).endPause, "", []string{"reason"}},
		{"GET", "/v1/attention", forRead, "", (*call).getAttention, "", nil},
		{"GET", "/v1/replicas", forRead, "", (*call).listReplicas, "the list of replicas", nil},
		{"GET", "/v1/seen", forRead, "", (*call).listSeen, "what was looked at", nil},
		{"POST", "/v1/seen", forWrite, "seen", (*call).markSeen, "", nil},
		{"DELETE", "/v1/seen/{concern}", forWrite, "unseen", (*call).unmarkSeen, "", []string{"reason"}},
		{"GET", "/v1/audit", forRead, "",
			(*call).listAudits, "", withPaging("who", "what", "workflow", "prefix", "execution", "since", "until")},
		{"GET", "/v1/signatures", forRead, "",
			(*call).listBadSignatures, "the list of bad signatures", withPaging("route", "event", "since", "until")},
		{"GET", "/v1/status", forRead, "", (*call).replicaStatus, "the status", nil},
		{"GET", "/v1/routes", forRead, "", (*call).listRoutes, "what the routes do", nil},
		{"GET", "/v1/routes/counts", forRead, "",
			(*call).getCounts, "what is counted", []string{"since", "until", "step", "latency"}},
		{"GET", "/v1/config", forRead, "", (*call).getConfig, "the configuration", []string{"origin"}},
		{"POST", "/v1/config/reload", forWrite, ReloadConfig, (*call).reloadConfig, "the configuration", nil},
		{"POST", "/v1/notify/test", forWrite, "notify.test", (*call).testNotify, "what is told of", nil},
		{"GET", "/v1/report", forRead, "", (*call).getReport, "the report", []string{"since"}},
		{"GET", "/v1/suggestions", forRead, "", (*call).listSuggestions, "what is suggested",
			[]string{"since", "route"}},
		{"GET", "/v1/embedded/backup", forWrite, "embedded.backup", (*call).sendBackup, "", nil},
	}
}
