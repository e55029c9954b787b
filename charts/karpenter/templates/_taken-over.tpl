{{/* Puts the values of the chart that the provider takes over where they are here. Every template that reads
     one of them calls this first. The image of that chart is left out, and so is a tag without a repository:
     it was one of that image. */}}
{{- define "tenon.takeOver" -}}
{{- with (include "tenon.provider" . | fromYaml).takesOver -}}
{{- range .renamed -}}
{{- if include "tenon.isGiven" (list $.Values .from) -}}
{{- $value := $.Values -}}
{{- range splitList "." .from }}{{ $value = index $value . }}{{ end -}}
{{- $path := splitList "." .to -}}
{{- $parent := $.Values -}}
{{- range initial $path }}{{ $parent = index $parent . }}{{ end -}}
{{- $_ := set $parent (last $path) $value -}}
{{- end -}}
{{- end -}}
{{- if include "tenon.ownImage" $ -}}
{{- range $name := list "repository" "tag" "digest" -}}
{{- if hasKey $.Values.image $name -}}
{{- $_ := set $.Values.controller.image $name (index $.Values.image $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The repository of `image` when it is not one of the chart that the provider takes over. */}}
{{- define "tenon.ownImage" -}}
{{- with (include "tenon.provider" . | fromYaml).takesOver -}}
{{- $repository := ($.Values.image | default dict).repository -}}
{{- if and $repository (not (regexMatch .images $repository)) }}{{ $repository }}{{ end -}}
{{- end -}}
{{- end }}

{{/* For each value of the chart that is taken over that is set and has no effect, a line. */}}
{{- define "tenon.withoutEffect" -}}
{{- with (include "tenon.provider" . | fromYaml).takesOver -}}
{{- range .ignored -}}
{{- if include "tenon.isGiven" (list $.Values .from) }}
{{ .from }} has no effect: {{ .because }}
{{- end -}}
{{- end -}}
{{- $image := $.Values.image | default dict -}}
{{- if and (or $image.repository $image.tag $image.digest) (not (include "tenon.ownImage" $)) }}
image has no effect: it names the image of another program. controller.image names that of {{ $.Chart.Name }}.
{{- end -}}
{{- end -}}
{{- end }}

{{/* Paths of the values of the chart that the provider takes over, with commas between and around them. */}}
{{- define "tenon.takenOver" -}}
{{- with (include "tenon.provider" . | fromYaml).takesOver -}}
,image,image.repository,image.tag,image.digest,
{{- range concat .renamed .ignored }}{{ .from }},{{ end -}}
{{- end -}}
{{- end }}

{{/* Whether a value is set. Arguments: the values and the path. */}}
{{- define "tenon.isGiven" -}}
{{- $found := index . 0 -}}
{{- $isGiven := true -}}
{{- range splitList "." (index . 1) -}}
{{- if and $isGiven (kindIs "map" $found) (hasKey $found .) -}}
{{- $found = index $found . -}}
{{- else -}}
{{- $isGiven = false -}}
{{- end -}}
{{- end -}}
{{- if $isGiven }}true{{ end -}}
{{- end }}
