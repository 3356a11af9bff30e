// Package schema checks the routes in deploy/ against what their readers say of them: custom
// resources against the CustomResourceDefinitions of their projects, as the Kubernetes API server
// does it (structure, unknown fields, CEL rules), and Envoy's file against Envoy's protos.
package schema
