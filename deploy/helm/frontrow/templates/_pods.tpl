{{/* Names, labels, environment and what every pod of Frontrow has in common. */}}

{{- define "frontrow.name" -}}
{{- if contains "frontrow" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-frontrow" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "frontrow.selector" -}}
app.kubernetes.io/name: frontrow
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "frontrow.labels" -}}
{{ include "frontrow.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "frontrow.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{/* The variables of every container. REDIS_PASSWORD comes first, because an address may contain it. */}}
{{- define "frontrow.environment" -}}
envFrom: [{secretRef: {name: {{ .Values.secret }}}}]
env:
  {{- with .Values.redis.passwordSecret }}
  - name: REDIS_PASSWORD
    valueFrom: {secretKeyRef: {name: {{ . }}, key: {{ $.Values.redis.passwordKey }}}}
  {{- end }}
  {{- with .Values.redis.url }}
  - {name: FRONTROW_REDIS_URL, value: {{ . | quote }}}
  {{- end }}
  {{- with .Values.ledger.secret }}
  - name: FRONTROW_LEDGER_URL
    valueFrom: {secretKeyRef: {name: {{ . }}, key: {{ $.Values.ledger.key }}}}
  {{- end }}
  {{- with .Values.bus.url }}
  - {name: FRONTROW_BUS_URL, value: {{ . | quote }}}
  {{- end }}
  - {name: FRONTROW_SERVER_PUBLIC_URL, value: {{ printf "https://%s" .Values.host | quote }}}
  - {name: FRONTROW_SERVER_TRUSTED_PROXIES, value: {{ join "," .Values.trustedProxies | quote }}}
  - {name: FRONTROW_SERVER_JOBS_INSIDE, value: "false"}
  - {name: FRONTROW_SERVER_DRAIN_S, value: {{ .Values.web.drainSeconds | quote }}}
  - {name: FRONTROW_SERVER_WORKERS, value: {{ .Values.web.workers | quote }}}
  - {name: FRONTROW_WORK_HEALTH, value: "0.0.0.0:8001"}
  - {name: FRONTROW_SERVER_METRICS, value: "0.0.0.0:8002"} # for Prometheus; the port of people has no /metrics
  {{- range $name, $value := .Values.settings }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
  {{- end }}
{{- end }}

{{- define "frontrow.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext: {runAsNonRoot: true, runAsUser: 10001, runAsGroup: 10001, fsGroup: 10001, seccompProfile: {type: RuntimeDefault}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
volumes: # of this pod alone: signing keys are in the ledger
  - {name: folder, emptyDir: {}}
  - {name: tmp, emptyDir: {}}
{{- end }}

{{- define "frontrow.container" -}}
image: {{ include "frontrow.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{ include "frontrow.environment" . }}
securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
volumeMounts: [{name: folder, mountPath: /var/lib/frontrow}, {name: tmp, mountPath: /tmp}]
{{- end }}

{{/* Pods of one part stand on different machines and in different zones, where there are several. */}}
{{- define "frontrow.spread" -}}
topologySpreadConstraints:
  {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: {matchLabels: {app.kubernetes.io/name: frontrow, app.kubernetes.io/instance: {{ $.root.Release.Name }}, app.kubernetes.io/component: {{ $.part }}}}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}
