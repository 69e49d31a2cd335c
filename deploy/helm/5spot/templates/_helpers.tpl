{{/* Combinations of values and flags that cannot work. */}}
{{- define "5spot.check" -}}
{{- if ne .Release.Namespace "5spot-system" -}}
{{- fail (printf "5-Spot runs in the namespace 5spot-system, not in %s: add --namespace 5spot-system" .Release.Namespace) -}}
{{- end -}}
{{- if and .Values.controller.enabled .Values.workloadAccess.enabled -}}
{{- fail "workloadAccess is for workload clusters: set controller.enabled to false, or workloadAccess.enabled to false" -}}
{{- end -}}
{{- if not (or .Values.controller.enabled .Values.agent.enabled .Values.workloadAccess.enabled) -}}
{{- fail "nothing to install: set controller.enabled, agent.enabled or workloadAccess.enabled" -}}
{{- end -}}
{{- with .Values.controller.leaderElection -}}
{{- if ge (int .renewDeadlineSeconds) (int .leaseDurationSeconds) -}}
{{- fail "controller.leaderElection.renewDeadlineSeconds must be less than leaseDurationSeconds" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The labels that every object has. */}}
{{- define "5spot.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/*
Objects of the files that `cargo xtask generate` copies from the kustomizations, with the labels of the chart and without
Namespaces. Takes `root`, `files`, and optionally `namespace` and `labels` for their metadata.
*/}}
{{- define "5spot.manifests" -}}
{{- $labels := merge (deepCopy (.labels | default dict)) (include "5spot.labels" .root | fromYaml) -}}
{{- range $file := .files }}
{{- $path := printf "files/%s" $file }}
{{- range $text := splitList "\n---\n" (required (printf "%s is missing in the chart" $path) ($.root.Files.Get $path)) }}
{{- $object := fromYaml $text }}
{{- if ne $object.kind "Namespace" }}
{{- $_ := set $object.metadata "labels" (merge (deepCopy ($object.metadata.labels | default dict)) $labels) }}
{{- with $.namespace }}
{{- $_ := set $object.metadata "namespace" . }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The name of an image. Takes `root` and `image`. */}}
{{- define "5spot.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* The number of replicas or instances. */}}
{{- define "5spot.replicas" -}}
{{- $defaults := dict "single" 1 "ha" 2 "sharded" 3 -}}
{{- .Values.controller.replicas | default (get $defaults .Values.controller.layout) -}}
{{- end -}}

{{/* The variables of the controller. */}}
{{- define "5spot.config" -}}
{{- with .Values.controller -}}
METRICS_PORT: "8080"
HEALTH_PORT: "8081"
{{- if eq .layout "ha" }}
OPERATOR_INSTANCE_COUNT: "1"
ENABLE_LEADER_ELECTION: "true"
LEASE_NAME: "5spot-leader"
LEASE_DURATION_SECONDS: {{ .leaderElection.leaseDurationSeconds | quote }}
LEASE_RENEW_DEADLINE_SECONDS: {{ .leaderElection.renewDeadlineSeconds | quote }}
{{- else if eq .layout "sharded" }}
OPERATOR_INSTANCE_COUNT: {{ include "5spot.replicas" $ | quote }}
{{- end }}
{{- with .managementNodesNamespaces }}
MANAGEMENT_NODES_NAMESPACES: {{ join "," . | quote }}
{{- end }}
{{- range $name, $value := .config }}
{{ $name }}: {{ $value | quote }}
{{- end }}
{{- end -}}
{{- end -}}
