// Package config is sidecar.yaml as Go types: every setting with its unit and default, strict loading, and all problems of
// a configuration at once, each with its file, line and column.
//
// A value comes from, in rising order, the defaults, the presets, the file and the environment (HOOKLOCK__ETCD__ENDPOINTS). Short
// forms (an upstream that is just a URL) are spelled out while reading, before the layers are merged, so an environment
// variable can override a part of what the file gave in short.
//
// Policies, templates and path patterns are those of idem and idem/naming. What needs to know senders it asks Source.CheckRoute.
//
// Words: a Source is what is read, Loaded what came of it, or Problems. A setting has a key, its path in the file, and an Origin, where its value
// came from. A Known is a preset or a scheme, a word that fills settings which the user leaves out.
package config
