{{/*
Templates for the Deployment of a chart that has this one as a dependency. Each takes a dict: root is $, values are those of this chart
(.Values.hooklock), and port is where your container listens.
*/}}

{{/* For initContainers. */}}
{{- define "hooklock.sidecar.container" -}}
name: hooklock
image: {{ include "hooklock.image" .values }}
imagePullPolicy: {{ .values.image.pullPolicy }}
# This makes an init container a sidecar: it starts before your containers, stays, and ends after them.
restartPolicy: Always
args: [serve, --config, /etc/hooklock/sidecar.yaml]
env:
  # All containers of a pod share its ports: these are seldom used.
  - {name: HOOKLOCK__LISTEN__ADDRESS, value: ":18080"}
  - {name: HOOKLOCK__HEALTH__LISTEN, value: ":18079"}
  - {name: HOOKLOCK__ADMIN__LISTEN, value: "127.0.0.1:18078"}
  - {name: HOOKLOCK__DATA_DIR, value: /var/lib/hooklock/data}
  - {name: HOOKLOCK__UPSTREAM__URL, value: "http://127.0.0.1:{{ required "give hooklock.sidecar.container the port of your container" .port | int }}"}
ports:
  - {name: hooklock, containerPort: 18080}
  - {name: hooklock-health, containerPort: 18079}
# Runs when the pod begins to end, while your containers still run. SIGTERM comes when they have ended.
lifecycle:
  preStop:
    exec: {command: [/usr/bin/hooklock, drain]}
{{ include "hooklock.container" .values }}
{{- end -}}

{{/* For volumes. */}}
{{- define "hooklock.sidecar.volumes" -}}
{{ include "hooklock.volumes" . }}
{{- end -}}

{{/* For the pod's labels: what the NetworkPolicy and the PodMonitor select. */}}
{{- define "hooklock.sidecar.labels" -}}
hooklock: sidecar
{{- end -}}

{{/* For the pod's annotations: a changed configuration rolls the pods. */}}
{{- define "hooklock.sidecar.annotations" -}}
hooklock-config: {{ toYaml .values.config | sha256sum | quote }}
{{- end -}}
