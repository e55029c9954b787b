{{/* `app.kubernetes.io/name`. A release named after Karpenter keeps that name, so that selectors of
     Services, dashboards and scripts go on working, and a release of its chart can be upgraded in place. */}}
{{- define "tenon.name" -}}
{{- if .Values.nameOverride -}}
{{- .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains "karpenter" .Release.Name -}}
karpenter
{{- else -}}
{{- .Chart.Name -}}
{{- end -}}
{{- end }}

{{/* Name of all objects. */}}
{{- define "tenon.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "tenon.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "tenon.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "tenon.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end }}

{{- define "tenon.selectorLabels" -}}
app.kubernetes.io/name: {{ include "tenon.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tenon.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{ include "tenon.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels and annotations of an object. Arguments: the context, and annotations of this object alone. */}}
{{- define "tenon.metadata" -}}
{{- $context := index . 0 -}}
labels:
  {{- include "tenon.labels" $context | nindent 2 }}
{{- with merge (dict) (index . 1 | default dict) ($context.Values.additionalAnnotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* `repository:tag`, with the digest behind it when there is one. */}}
{{- define "tenon.image" -}}
{{- $image := .Values.controller.image -}}
{{- if and (regexMatch "karpenter|(^|/)cluster-autoscaler" $image.repository) (not (contains "tenon" $image.repository)) -}}
{{- fail (printf "controller.image.repository: %s is the image of another program. Leave it out, or name where the image of Tenon is; a copy of it needs tenon in its name" $image.repository) -}}
{{- end -}}
{{- $image.repository }}:{{ $image.tag | default (printf "v%s" .Chart.AppVersion) }}
{{- with $image.digest }}@{{ . }}{{ end -}}
{{- end }}
