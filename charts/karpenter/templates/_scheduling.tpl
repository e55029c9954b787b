{{/* Gives a pod affinity term or a spread constraint the selector of this release's pods, unless it has one.
     Arguments: the context and the term, which is changed. */}}
{{- define "tenon.selectOwnPods" -}}
{{- $context := index . 0 -}}
{{- $term := index . 1 -}}
{{- if not (hasKey $term "labelSelector") -}}
{{- $labels := include "tenon.selectorLabels" $context | fromYaml -}}
{{- $_ := set $term "labelSelector" (dict "matchLabels" $labels) -}}
{{- end -}}
{{- end }}

{{/* The affinity, every pod term with a selector. Unless it prefers nodes itself, it prefers those that the
     provider has for controllers. */}}
{{- define "tenon.affinity" -}}
{{- $affinity := deepCopy .Values.affinity -}}
{{- with (include "tenon.provider" . | fromYaml).preferredNodes -}}
{{- $nodes := $affinity.nodeAffinity | default dict -}}
{{- if not (hasKey $nodes "preferredDuringSchedulingIgnoredDuringExecution") -}}
{{- $term := dict "weight" 100 "preference" (dict "matchExpressions" .) -}}
{{- $_ := set $nodes "preferredDuringSchedulingIgnoredDuringExecution" (list $term) -}}
{{- $_ := set $affinity "nodeAffinity" $nodes -}}
{{- end -}}
{{- end -}}
{{- range $kind := list "podAffinity" "podAntiAffinity" -}}
{{- with index $affinity $kind -}}
{{- range .requiredDuringSchedulingIgnoredDuringExecution -}}
{{- include "tenon.selectOwnPods" (list $ .) -}}
{{- end -}}
{{- range .preferredDuringSchedulingIgnoredDuringExecution -}}
{{- include "tenon.selectOwnPods" (list $ .podAffinityTerm) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $affinity -}}
{{- end }}

{{/* The spread constraints, each with a selector. */}}
{{- define "tenon.topologySpreadConstraints" -}}
{{- $constraints := deepCopy .Values.topologySpreadConstraints -}}
{{- range $constraints -}}
{{- include "tenon.selectOwnPods" (list $ .) -}}
{{- end -}}
{{- toYaml $constraints -}}
{{- end }}
