{{/* Name of the chart's objects in general, with the cloud in it. */}}
{{- define "cluster-autoscaler.name" -}}
{{- default (printf "%s-%s" .Values.cloudProvider .Chart.Name) .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Name of the objects of this release. */}}
{{- define "cluster-autoscaler.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default (printf "%s-%s" .Values.cloudProvider .Chart.Name) .Values.nameOverride -}}
{{- ternary $name (printf "%s-%s" .Release.Name $name) (eq $name .Release.Name) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "cluster-autoscaler.serviceAccountName" -}}
{{- default (ternary (include "cluster-autoscaler.fullname" .) "default" .Values.rbac.serviceAccount.create) .Values.rbac.serviceAccount.name -}}
{{- end -}}

{{/* Labels by which pods are selected. */}}
{{- define "cluster-autoscaler.selectorLabels" -}}
app.kubernetes.io/name: {{ include "cluster-autoscaler.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* Selector of the Deployment. It cannot be changed once there is one, so that it is that of Cluster Autoscaler's
     chart, to the last label. */}}
{{- define "cluster-autoscaler.matchLabels" -}}
{{- if .Values.deployment.selector -}}
{{ toYaml .Values.deployment.selector }}
{{- else -}}
{{ toYaml (mergeOverwrite (include "cluster-autoscaler.selectorLabels" . | fromYaml) .Values.podLabels) }}
{{- end -}}
{{- end -}}

{{- define "cluster-autoscaler.podLabels" -}}
{{ toYaml (mergeOverwrite (include "cluster-autoscaler.selectorLabels" . | fromYaml) .Values.additionalLabels .Values.podLabels .Values.deployment.selector) }}
{{- end -}}

{{/* Not empty when `image` names Cluster Autoscaler's own, which is not run. */}}
{{- define "cluster-autoscaler.hasForeignImage" -}}
{{- $repository := .Values.image.repository -}}
{{- if and (regexMatch "(^|/)cluster-autoscaler[^/]*$" $repository) (not (contains "tenon" $repository)) -}}true{{- end -}}
{{- end -}}

{{- define "cluster-autoscaler.image" -}}
{{- $own := printf "v%s" .Chart.AppVersion -}}
{{- if include "cluster-autoscaler.hasForeignImage" . -}}
tenon:{{ $own }}
{{- else -}}
{{ .Values.image.repository }}:{{ default $own .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- define "cluster-autoscaler.labels" -}}
{{ include "cluster-autoscaler.selectorLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
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
{{- $named := and .Values.autoscalingGroups (ne .Values.cloudProvider "clusterapi") -}}
{{- if or $discovery.clusterName $discovery.namespace $discovery.labels $named -}}true{{- end -}}
{{- end -}}

{{/* Not empty when rights hold in the namespace of the release alone. */}}
{{- define "cluster-autoscaler.isNamespaced" -}}
{{- if eq (toString .Values.rbac.clusterScoped) "false" -}}true{{- end -}}
{{- end -}}

{{/* Which objects of the management cluster are node groups. */}}
{{- define "cluster-autoscaler.discovery" -}}
{{- $parts := list -}}
{{- with .Values.autoDiscovery.clusterName -}}{{- $parts = append $parts (printf "clusterName=%s" (tpl . $)) -}}{{- end -}}
{{- with .Values.autoDiscovery.namespace -}}{{- $parts = append $parts (printf "namespace=%s" (tpl . $)) -}}{{- end -}}
{{- range .Values.autoDiscovery.labels -}}
{{- range $key, $value := . -}}{{- $parts = append $parts (tpl (printf "%s=%v" $key $value) $) -}}{{- end -}}
{{- end -}}
clusterapi:{{ join "," $parts }}
{{- end -}}

{{/* Namespace of lease, status and priorities, which are in the workload cluster. */}}
{{- define "cluster-autoscaler.namespace" -}}
{{- if and (eq .Values.cloudProvider "clusterapi") (eq .Values.clusterAPIMode "kubeconfig-incluster") -}}
{{- default "kube-system" .Values.clusterAPIConfigMapsNamespace -}}
{{- else -}}
{{- .Release.Namespace -}}
{{- end -}}
{{- end -}}

{{/* Flags of the connections to the workload and the management cluster. */}}
{{- define "cluster-autoscaler.connections" -}}
{{- $mode := .Values.clusterAPIMode -}}
{{- if not (hasPrefix "incluster-" $mode) }}
- {{ printf "--kubeconfig=%s" .Values.clusterAPIWorkloadKubeconfigPath | quote }}
{{- end }}
{{- if has $mode (list "incluster-kubeconfig" "kubeconfig-kubeconfig") }}
- {{ printf "--cloud-config=%s" .Values.clusterAPICloudConfigPath | quote }}
{{- end }}
{{- if eq $mode "kubeconfig-incluster" }}
- --clusterapi-cloud-config-authoritative
{{- end }}
{{- end -}}

{{/* Rules about objects of the management cluster, where that is the cluster of the release. */}}
{{- define "cluster-autoscaler.managementRules" -}}
{{- if and (eq .Values.cloudProvider "clusterapi") (hasSuffix "-incluster" .Values.clusterAPIMode) }}
- {apiGroups: [cluster.x-k8s.io], resources: [machinedeployments, machinepools, machines, machinesets], verbs: [get, list, watch, patch, update]}
- apiGroups: [cluster.x-k8s.io]
  resources: [machinedeployments/scale, machinepools/scale, machinesets/scale]
  verbs: [get, patch, update]
- apiGroups: [cluster.x-k8s.io]
  resources: [clusters]
  verbs: [get, list, watch]
- apiGroups: [infrastructure.cluster.x-k8s.io]
  resources: ['*']
  verbs: [get]
{{- end }}
{{- end -}}

{{/* The heap gets three quarters of the memory limit: buffers and code are outside of it. Empty without a limit. */}}
{{- define "cluster-autoscaler.nodeOptions" -}}
{{- $limits := (. | default dict).limits | default dict -}}
{{- $limit := ternary (printf "%.0f" $limits.memory) (toString (default "" $limits.memory)) (kindIs "float64" $limits.memory) -}}
{{- if regexMatch "^[0-9]+(\\.[0-9]+)?([KMG]i|[kMG])?$" $limit -}}
{{- $factors := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 -}}
{{- $bytes := mulf (float64 (regexFind "^[0-9.]+" $limit)) (get $factors (regexFind "[A-Za-z]*$" $limit)) -}}
--max-old-space-size={{ divf (mulf $bytes 0.75) 1048576 | floor | int }}
{{- end -}}
{{- end }}
