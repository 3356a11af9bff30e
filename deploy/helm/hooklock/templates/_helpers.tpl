{{- define "hooklock.name" -}}
{{- printf "%s-hooklock" (trimSuffix "-hooklock" .Release.Name) | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "hooklock.selector" -}}
app.kubernetes.io/name: hooklock
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "hooklock.labels" -}}
{{ include "hooklock.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* The pods that have this release's Hooklock. A sidecar's are its own chart's, which does not say of which release they are. */}}
{{- define "hooklock.pods" -}}
hooklock: {{ .Values.mode }}
{{- if eq .Values.mode "gateway" }}
{{ include "hooklock.selector" . }}
{{- end }}
{{- end -}}

{{/* Says something where there is more than one replica, or may be: without a number an autoscaler decides. Takes values of this chart. */}}
{{- define "hooklock.several" -}}
{{- if or (kindIs "invalid" .replicas) (gt (int .replicas) 1) -}}several{{- end -}}
{{- end -}}

{{/* Seconds of a duration such as 1m30s. */}}
{{- define "hooklock.seconds" -}}
{{- $seconds := 0.0 -}}
{{- range regexFindAll "[0-9.]+[a-z]+" . -1 -}}
{{- $seconds = addf $seconds (mulf (regexFind "[0-9.]+" .) (get (dict "ms" 0.001 "s" 1 "m" 60 "h" 3600) (regexFind "[a-z]+" .) | default 0)) -}}
{{- end -}}
{{- $seconds -}}
{{- end -}}

{{/* Takes values of this chart. */}}
{{- define "hooklock.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default "0.1.0" }}
{{- end -}}
{{- end -}}

{{/* What the sidecar and the gateway have in common: probes, resources, security, mounts. Takes values of this chart. */}}
{{- define "hooklock.container" -}}
# Looks at neither etcd nor your service: a restart heals neither. Containers that follow need not wait for etcd.
startupProbe:
  httpGet: {path: /livez, port: hooklock-health}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: hooklock-health}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
# A session is live and the routes are loaded. A short outage of etcd does not flip it.
readinessProbe:
  httpGet: {path: /readyz, port: hooklock-health}
  periodSeconds: 5
  timeoutSeconds: 2
resources: {{- toYaml .resources | nindent 2 }}
# What Pod Security asks for at the level "restricted".
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
  seccompProfile: {type: RuntimeDefault}
volumeMounts:
  - {name: hooklock-config, mountPath: /etc/hooklock, readOnly: true}
  - {name: hooklock-secrets, mountPath: /etc/hooklock-secrets, readOnly: true}
  - {name: hooklock-data, mountPath: /var/lib/hooklock}
  {{- if eq .mode "sidecar" }}
  # An empty folder, where Kubernetes would put a token for its API: Hooklock needs none, and your containers keep theirs.
  - {name: hooklock-data, subPath: no-token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
  {{- end }}
{{- end -}}

{{/* Says something where the configuration names no etcd, so that Hooklock runs its own. Takes values of this chart. */}}
{{- define "hooklock.embedded" -}}
{{- if empty (dig "etcd" "endpoints" (list) .config) -}}embedded{{- end -}}
{{- end -}}

{{/* Volumes of a pod with Hooklock in it. Takes a dict: root, values. */}}
{{- define "hooklock.volumes" -}}
- name: hooklock-config
  configMap: {name: {{ include "hooklock.name" .root }}}
# Files, so that a secret is in no environment.
- name: hooklock-secrets
  secret: {secretName: {{ .values.secretName | default (include "hooklock.name" .root) }}, optional: {{ empty .values.secretName }}}
# The generated token of the admin API, and the embedded etcd where there is no other; it goes with the pod.
- name: hooklock-data
  emptyDir: {sizeLimit: {{ include "hooklock.embedded" .values | empty | ternary "16Mi" "4Gi" }}}
{{- end -}}
