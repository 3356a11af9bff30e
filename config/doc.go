// Package config is sidecar.yaml as Go types: every setting with its unit and default, strict
// loading, and all problems of a configuration at once, each with its file, line and column.
//
// A value comes from, in rising order, the defaults, the presets, the file and the environment
// (HOOKLOCK__ETCD__ENDPOINTS). Short forms (an upstream that is just a URL) are expanded while
// reading, before the layers are merged, so an environment variable can override a part of a short
// form in the file.
//
// Policies, templates and path patterns are those of idem and idem/naming. Source.CheckRoute makes
// the checks that need to know senders.
//
// Words: a Source is what is read, Loaded the result, or Problems. A setting has a key, its path in
// the file, and an Origin, where its value came from. A Known is a preset or a scheme, a word that
// fills settings which the user leaves out.
package config
