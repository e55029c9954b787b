{{/* Metadata of an object that grants rights. */}}
{{- define "cluster-autoscaler.roleMetadata" -}}
name: {{ include "cluster-autoscaler.fullname" . }}
labels:
  {{- include "cluster-autoscaler.labels" . | nindent 2 }}
{{- with .Values.rbac.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
