// Package client calls the admin API of Hooklock. A program uses it to look at executions and locks
// and to change them, to act on the execution that it works on itself (guard, heartbeat, complete),
// or to use Hooklock as a lock server. It needs nothing but the standard library.
//
//	c, err := client.New(client.Options{Token: client.TokenFile("/run/secrets/hooklock")})
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	failed := client.ExecutionQuery{Status: client.Failed, Since: "24h"}
//	for x, err := range c.Executions(ctx, failed) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(x.Workflow, x.EventID, x.Error.Code)
//	}
//
// # Calls and errors
//
// A Client is safe for concurrent use. It sends each call once: it repeats none, because only the
// caller knows what a second attempt would do. A call ends with its context, or after
// Options.Timeout.
//
// If the server refuses a call, the error is a *Problem, and its Code says why. Each call can be
// refused with CodeUnauthorized, CodeForbidden, CodeBadRequest, CodeRateLimited or
// CodeStoreUnavailable; a method names only those codes that are its own. Any other error means
// that no answer came: a change may have been made, or not.
//
// # Values
//
// The types are the JSON of the API, and the server uses them, too. "Absent" in a comment means
// that the JSON has no such member: of an answer, the field then has its zero value; of a request,
// a field with its zero value is not sent. Times are UTC. Fields that a newer server sends are in
// RawJSON.
//
// # Words
//
// A sender sends an event, in one or more deliveries: HTTP requests. Hooklock forwards them to the
// service, which is also called the upstream. A duplicate is a delivery of an event that came
// before. An execution is one attempt to run an event. A workflow is what must not run twice at a
// time, such as one customer; the lock of a workflow belongs to the execution that runs, and its
// fencing token grows with each one. An event is parked if its sender was told that it is accepted
// before it ran, and a dead letter if it was given up after that. A lock is held if it outlives the
// answer of the service, until the service completes the execution. A replica is one process of
// Hooklock.
package client
