{{- define "platform-auth-server.chartName" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 48 | trimSuffix "-" -}}
{{- end -}}

{{- define "platform-auth-server.name" -}}
{{- $chart := include "platform-auth-server.chartName" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 48 | trimSuffix "-" -}}
{{- else if contains $chart .Release.Name -}}
{{- .Release.Name | trunc 48 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $chart | trunc 48 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "platform-auth-server.selectorLabels" -}}
app.kubernetes.io/name: {{ include "platform-auth-server.chartName" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- /*
The labels of an object as YAML. `more` is a list of maps, of which a later one takes precedence. The labels of the selectors take
precedence over all of them, because a Deployment whose pods lack them is rejected. Joining maps, rather than their text, prevents
duplicate keys if commonLabels has a standard name.
*/ -}}
{{- define "platform-auth-server.mergedLabels" -}}
{{- $labels := dict -}}
{{- range .more -}}
{{- $labels = mergeOverwrite $labels . -}}
{{- end -}}
{{- toYaml (mergeOverwrite $labels (include "platform-auth-server.selectorLabels" .root | fromYaml)) -}}
{{- end -}}

{{- define "platform-auth-server.ownLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "platform-auth-server.labels" -}}
{{- include "platform-auth-server.mergedLabels" (dict "root" . "more" (list (include "platform-auth-server.ownLabels" . | fromYaml) .Values.commonLabels)) -}}
{{- end -}}

{{- define "platform-auth-server.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Empty for the account "default" of the namespace. */ -}}
{{- define "platform-auth-server.serviceAccountName" -}}
{{- with .Values.serviceAccount -}}
{{- if .name -}}
{{- .name -}}
{{- else if .create -}}
{{- include "platform-auth-server.name" $ -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The host of the callback URL, without a port. */ -}}
{{- define "platform-auth-server.host" -}}
{{- regexReplaceAll ":[0-9]+$" (urlParse .Values.callbackUrl).host "" -}}
{{- end -}}

{{- /* The name of the key of the Secret with which the server authenticates itself at the provider. */ -}}
{{- define "platform-auth-server.clientCredential" -}}
{{- ternary "client-key" "client-secret" (eq .Values.clientAuthMethod "private_key_jwt") -}}
{{- end -}}

{{- /* Helm merges maps, so the default is here and not in values.yaml. Otherwise, {} would not replace it. */ -}}
{{- define "platform-auth-server.podSecurityContext" -}}
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


{{- /* The path of the callback URL in front of /api/auth/callback: "/" or, for example, "/login/". */ -}}
{{- define "platform-auth-server.basePath" -}}
{{- trimSuffix "api/auth/callback" (urlParse .Values.callbackUrl).path -}}
{{- end -}}

{{- /* A path of the server behind the base path: "/login/api/auth/" for the path "/api/auth/" and the base path "/login/". */ -}}
{{- define "platform-auth-server.routePath" -}}
{{- printf "%s%s" (trimSuffix "/" (include "platform-auth-server.basePath" (first .))) (last .) -}}
{{- end -}}
