package page

import (
	"fmt"
	"net/http"
	"strings"

	"hooklock/admin/client"
	"hooklock/admin/story"
)

// jobsScreen is the screen of actions on many events.
func jobsScreen(v *visit) ([]section, error) {
	l, err := readObject[client.JobList](v, "/v1/jobs")
	if err != nil {
		return nil, err
	}
	sections := []section{{
		ID: "jobs", Title: "Jobs", Count: len(l.Jobs), Empty: "No action on many events was started.",
		Note: "Actions on many events, the newest first. They go on when this page is closed, and at another " +
			"replica if their own dies.",
		Table: tableOf("Jobs", []column[client.Job]{
			{"Job", func(j *client.Job) cell {
				return cell{Text: j.JobID, Class: "id", Title: j.Who + ": " + j.Reason,
					Href: screenLink("jobs", "job", j.JobID)}
			}},
			{"Does", func(j *client.Job) cell { return textCell(jobVerb(j) + " " + jobAbout(j)) }},
			{"Progress", jobProgress},
			{"Failed", func(j *client.Job) cell { return numberCell(int64(j.Failed)) }},
			{"Left alone", func(j *client.Job) cell { return numberCell(int64(j.Refused)) }},
			{"Started", func(j *client.Job) cell { return timeCell(j.StartedAt, "ago") }},
			{"Result", jobResult},
			{"Actions", func(j *client.Job) cell { return cell{Asks: jobAsks(j)} }},
		}, l.Jobs, func(j *client.Job) string { return j.JobID }),
	}}
	for i := range l.Jobs {
		if j := &l.Jobs[i]; j.JobID == v.query.Get("job") {
			sections = append([]section{oneJob(j)}, sections...)
		}
	}
	return sections, nil
}

// oneJob shows one job, with the first that failed or were left alone.
func oneJob(j *client.Job) section {
	s := section{ID: "job", Title: jobVerb(j) + " " + jobAbout(j), Asks: jobAsks(j)}
	add := func(name string, cells ...cell) { s.Facts = append(s.Facts, fact{name, cells}) }
	add("Job", cell{Text: j.JobID, Class: "id"})
	add("Progress", jobProgress(j), jobResult(j))
	add("By", textCell(j.Who+": "+j.Reason))
	add("Started", timeCell(j.StartedAt, "at"))
	if j.Replica != "" {
		add("Replica", textCell(j.Replica))
	}
	s.Table = tableOf("The first that failed or were left alone", []column[client.JobFailure]{
		{"Event", func(f *client.JobFailure) cell {
			return cell{Text: f.ExecutionID, Class: "id", Href: screenLink("story", "id", f.ExecutionID)}
		}},
		{"Workflow", func(f *client.JobFailure) cell { return cutCell(f.Workflow) }},
		{"Outcome", func(f *client.JobFailure) cell {
			if f.Refused {
				return textCell("left alone")
			}
			return cell{Text: "failed", Class: "bad"}
		}},
		{"Why", func(f *client.JobFailure) cell { return cutCell(f.Why) }},
	}, j.Failures, func(f *client.JobFailure) string { return f.ExecutionID })
	return s
}

func jobVerb(j *client.Job) string {
	if j.Again {
		return "Rerun"
	}
	return map[client.JobKind]string{client.JobRun: "Run now", client.JobSkip: "Skip", client.JobRerun: "Rerun",
		client.JobCancel: "Cancel", client.JobForget: "Allow again"}[j.Kind]
}

func jobAbout(j *client.Job) string {
	if n := len(j.Executions); n > 0 {
		return story.Count(n, "selected event", "selected events")
	}
	f, said := &j.Filter, []string{}
	for _, one := range [][2]string{
		{"of ", f.Route}, {"of workflow ", f.Workflow}, {"labelled ", f.Label}, {"that ended as ", string(f.Status)},
		{"since ", f.Since}, {"until ", f.Until}} {
		if one[1] != "" {
			said = append(said, one[0]+one[1])
		}
	}
	what := map[client.ParkState]string{client.ParkDeadLetter: "dead letters", client.ParkBlocked: "blocked events",
		client.ParkWaiting: "waiting events"}[f.State]
	if what == "" {
		what = "events"
	}
	return strings.TrimSpace(what + " " + strings.Join(said, ", "))
}

// jobProgress is a bar, and the numbers behind it.
func jobProgress(j *client.Job) cell {
	if j.Matched < 0 {
		return textCell("begins")
	}
	return cell{More: []cell{{Done: j.Ended(), Of: max(j.Matched, 1)},
		textCell(fmt.Sprintf("%d of %s", j.Ended(), story.Count(j.Matched, "event", "events")))}}
}

func jobResult(j *client.Job) cell {
	switch {
	case j.State == client.JobStopped:
		return cell{Text: j.Result, Class: "warn"}
	case j.Result != "" && j.Failed+j.Refused > 0:
		return cell{Text: j.Result, Class: "bad"}
	case j.Result != "":
		return cell{Text: j.Result, Class: "good"}
	case j.SecondsLeft > 0:
		return textCell(story.Span(secondsDuration(j.SecondsLeft)) + " left")
	case j.Waiting > 0:
		return textCell(story.Count(j.Waiting, "waits or runs", "wait or run"))
	}
	return cell{}
}

func jobAsks(j *client.Job) []ask {
	switch j.State {
	case client.JobRunning:
		return []ask{askFor("Stop…", "job-stop", "id", j.JobID)}
	case client.JobStopped:
		return []ask{askFor("Resume…", "job-resume", "id", j.JobID)}
	}
	return nil
}

// changeJob asks about stopping a job, or letting it go on.
func changeJob(what string) func(*visit) (*question, error) {
	return func(v *visit) (*question, error) {
		j, err := readObject[client.Job](v, "/v1/jobs/"+pathSegment(v.query.Get("id")))
		if err != nil {
			return nil, err
		}
		q := &question{Title: "Stop " + j.JobID, Verb: "Stop", Reason: true,
			Facts: []string{"What it has let run goes on. The job can be resumed."}}
		if what == "resume" {
			q.Title, q.Verb, q.Facts = "Resume "+j.JobID, "Resume", []string{"It goes on where it was."}
		}
		if want := map[string]client.JobState{"stop": client.JobRunning,
			"resume": client.JobStopped}[what]; j.State != want {
			q.Stop = "It is " + string(j.State) + " by now."
			return q, nil
		}
		q.Requests = []request{{Method: http.MethodPost, Path: "v1/jobs/" + pathSegment(j.JobID) + "/" + what,
			Body: map[string]any{}, Reason: "body", Names: j.JobID, Done: "Done."}}
		q.Commands = []shellLine{hooklockCommand("jobs", what, j.JobID, "--reason", theReason)}
		return q, nil
	}
}

// jobRequest starts a job; about is its filter or its executions.
func jobRequest(kind client.JobKind, about string, what any) request {
	return request{
		Method: http.MethodPost, Path: "v1/jobs", Body: map[string]any{"kind": string(kind), about: what},
		Reason: "body", Names: "job",
		Done: "The job has begun: the screen Jobs shows how far it is. It goes on when this page is closed.",
	}
}
