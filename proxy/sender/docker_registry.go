package sender

import (
	"hooklock/idem"
)

// DockerRegistry returns the preset of the notifications of the Docker registry (CNCF
// Distribution).
func (known) DockerRegistry() Preset {
	return Preset{
		Name: "docker-registry", Aliases: []string{"distribution"}, Scheme: "none", EventID: "{body.events[0].id}",
		OnMismatch: idem.MismatchExecute,
		Facts: Facts{
			Retries: RetriesAll, RetriesOn: "after every answer but 2xx and 3xx: 10 tries in 60 ms, then one a " +
				"second without end; later events wait behind it",
		},
		Tried: &SelfHosted{
			Name: "Docker registry", Version: "2.8.2", Run: RunInTest,
			Refused: "again, without end", Unavailable: "the same", Redirected: "GET, lost", Silent: "waits 1 s, again",
			EventID: "`events[0].id`",
		},
		Page: Page{
			Title:    "Docker registry (Distribution)",
			Workflow: `registry/{body.events[0].target.repository ?? "other"}`,
			SampleID: "one",
		},
		Sources: []string{"docker-registry 2.8.2, run against Hooklock (deploy/test/senders)"},
		Notes: []string{
			"A request has one event.",
			"It waits as long as the endpoint's `timeout` (1 s by default). A slower service still runs once: the " +
				"next try gets its answer.",
			"It follows a 301 with a GET, and takes a 302 without Location for success: the event is lost.",
			"It can send a secret in `headers`, which `verify: {scheme: token}` checks.",
		},
		sample: func(s *sample) {
			s.setType("application/vnd.docker.distribution.events.v1+json")
			s.setBody(`{"events":[{"id":%s,"timestamp":"`+rfc3339(s.happened)+
				`","action":"push","target":{"mediaType":"application/octet-stream","size":1,`+
				`"digest":"sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb","length":1,"repository":"shop"},`+
				`"request":{"id":"a6c9536a","addr":"192.0.2.1:36118","host":"registry.example.com","method":"PUT","useragent":"docker"},"actor":{},"source":{"addr":"registry:5000"}}]}`, s.id)
		},
	}
}
