{{/* Name of the chart's objects in general, with the cloud in it. */}}
{{- define "cluster-autoscaler.name" -}}
{{- default (printf "%s-%s" .Values.cloudProvider .Chart.Name) .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Name of the objects of this release. */}}
{{- define "cluster-autoscaler.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "cluster-autoscaler.name" . -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "cluster-autoscaler.serviceAccountName" -}}
{{- default (ternary (include "cluster-autoscaler.fullname" .) "default" .Values.rbac.serviceAccount.create) .Values.rbac.serviceAccount.name -}}
{{- end -}}

{{/* Labels by which pods are selected. */}}
{{- define "cluster-autoscaler.selectorLabels" -}}
app.kubernetes.io/name: {{ include "cluster-autoscaler.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "cluster-autoscaler.labels" -}}
{{ include "cluster-autoscaler.selectorLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A flag of extraArgs, or what holds without it; called with the root, a name and that. */}}
{{- define "cluster-autoscaler.flag" -}}
{{- $found := index . 2 -}}
{{- range $key, $value := (index . 0).Values.extraArgs -}}
{{- if and (eq (regexFind "[^_]+" $key) (index $ 1)) (not (kindIs "invalid" $value)) -}}{{- $found = toString $value -}}{{- end -}}
{{- end -}}
{{- $found -}}
{{- end -}}

{{/* Not empty when something is to be scaled, so that there is a Deployment. */}}
{{- define "cluster-autoscaler.scales" -}}
{{- $discovery := .Values.autoDiscovery -}}
{{- if or $discovery.clusterName $discovery.namespace $discovery.labels .Values.autoscalingGroups -}}true{{- end -}}
{{- end -}}
