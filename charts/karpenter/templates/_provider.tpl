{{/* What the provider asks for: `providers/NAME.yaml`, which `npm run charts` writes from the provider's
     module. The templates know no provider by its name. */}}
{{- define "tenon.provider" -}}
{{- $.Files.Get (printf "providers/%s.yaml" $.Values.provider) -}}
{{- end }}

{{/* The value of an entry of `values`. Arguments: the context and the entry. Text, the items of a list with
     commas between them, or as YAML where it is a file; nothing where it is empty. */}}
{{- define "tenon.providerValue" -}}
{{- $context := index . 0 -}}
{{- $entry := index . 1 -}}
{{- $value := index (index $context.Values $context.Values.provider) $entry.name -}}
{{- if not (kindIs "slice" $value) -}}
{{- $value -}}
{{- else if $value -}}
{{- if eq $entry.kind "file" }}{{ toYaml $value }}{{ else }}{{ join "," $value }}{{ end -}}
{{- end -}}
{{- end }}

{{/* Ends the rendering when a value is missing, or is not what it has to be. */}}
{{- define "tenon.checkProvider" -}}
{{- $name := .Values.provider -}}
{{- range (include "tenon.provider" . | fromYaml).values -}}
{{- $value := include "tenon.providerValue" (list $ .) -}}
{{- if and .needed (not $value) -}}
{{- fail (printf "\n\nprovider %s needs %s.%s, %s" $name $name .name .needed) -}}
{{- end -}}
{{- if and .jsonObject $value -}}
{{- if hasKey (fromJson $value) "Error" -}}
{{- fail (printf "\n\n%s.%s is no JSON object: give one with %s" $name .name .jsonObject) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "tenon.providerEnv" -}}
{{- $all := list -}}
{{- range (include "tenon.provider" . | fromYaml).values -}}
{{- $value := include "tenon.providerValue" (list $ .) -}}
{{- if $value -}}
{{- if eq .kind "variable" -}}
{{- $all = append $all (dict "name" .variable "value" $value) -}}
{{- else if eq .kind "file" -}}
{{- $all = append $all (dict "name" .variable "value" (printf "/etc/tenon/%s" .file)) -}}
{{- else if eq .kind "secretFile" -}}
{{- $all = append $all (dict "name" .variable "value" (printf "/etc/tenon-secrets/%s/%s" .name .entry)) -}}
{{- else if eq .kind "secretVariables" -}}
{{- range .variables -}}
{{- $ref := dict "name" $value "key" . -}}
{{- $all = append $all (dict "name" . "valueFrom" (dict "secretKeyRef" $ref)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $all }}{{ toYaml $all }}{{ end -}}
{{- end }}

{{/* Texts of files by their names: what the controller reads at its start only. */}}
{{- define "tenon.providerFiles" -}}
{{- $files := dict -}}
{{- range (include "tenon.provider" . | fromYaml).values -}}
{{- $value := include "tenon.providerValue" (list $ .) -}}
{{- if and (eq .kind "file") $value }}{{ $_ := set $files .file $value }}{{ end -}}
{{- end -}}
{{- if $files }}{{ toYaml $files }}{{ end -}}
{{- end }}

{{- define "tenon.providerVolumes" -}}
{{- $all := list -}}
{{- if include "tenon.providerFiles" . -}}
{{- $all = append $all (dict "name" "files" "configMap" (dict "name" (printf "%s-files" (include "tenon.fullname" .)))) -}}
{{- end -}}
{{- range (include "tenon.provider" . | fromYaml).values -}}
{{- $value := include "tenon.providerValue" (list $ .) -}}
{{- if and (eq .kind "secretFile") $value -}}
{{- $all = append $all (dict "name" (.name | kebabcase) "secret" (dict "secretName" $value)) -}}
{{- end -}}
{{- end -}}
{{- if $all }}{{ toYaml $all }}{{ end -}}
{{- end }}

{{- define "tenon.providerVolumeMounts" -}}
{{- $all := list -}}
{{- if include "tenon.providerFiles" . -}}
{{- $all = append $all (dict "name" "files" "mountPath" "/etc/tenon" "readOnly" true) -}}
{{- end -}}
{{- range (include "tenon.provider" . | fromYaml).values -}}
{{- if and (eq .kind "secretFile") (include "tenon.providerValue" (list $ .)) -}}
{{- $path := printf "/etc/tenon-secrets/%s" .name -}}
{{- $all = append $all (dict "name" (.name | kebabcase) "mountPath" $path "readOnly" true) -}}
{{- end -}}
{{- end -}}
{{- if $all }}{{ toYaml $all }}{{ end -}}
{{- end }}
