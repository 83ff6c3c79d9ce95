{{- define "chartName" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 48 | trimSuffix "-" -}}
{{- end -}}

{{- define "name" -}}
{{- $chart := include "chartName" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 48 | trimSuffix "-" -}}
{{- else if contains $chart .Release.Name -}}
{{- .Release.Name | trunc 48 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $chart | trunc 48 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "selectorLabels" -}}
app.kubernetes.io/name: {{ include "chartName" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "labels" -}}
{{ include "selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Empty for the account "default" of the namespace. */ -}}
{{- define "serviceAccountName" -}}
{{- with .Values.serviceAccount -}}
{{- if .name -}}
{{- .name -}}
{{- else if .create -}}
{{- include "name" $ -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The host of the callback URL, without a port. */ -}}
{{- define "host" -}}
{{- regexReplaceAll ":[0-9]+$" (urlParse .Values.callbackUrl).host "" -}}
{{- end -}}

{{- /* The name of the key of the Secret with which the server authenticates itself at the provider. */ -}}
{{- define "clientCredential" -}}
{{- ternary "client-key" "client-secret" (eq .Values.clientAuthentication "private_key_jwt") -}}
{{- end -}}

{{- /* Helm merges maps, so the default is here and not in values.yaml. Otherwise, {} would not replace it. */ -}}
{{- define "podSecurityContext" -}}
{{- if kindIs "invalid" .Values.podSecurityContext -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
seccompProfile: {type: RuntimeDefault}
{{- else -}}
{{- toYaml .Values.podSecurityContext -}}
{{- end -}}
{{- end -}}
