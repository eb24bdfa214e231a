{{/* The name of everything: the release's, with the chart's where that does not hold it. */}}
{{- define "storestream.name" -}}
{{- $name := contains "storestream" .Release.Name | ternary .Release.Name (printf "%s-storestream" .Release.Name) -}}
{{- $name | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- define "storestream.selector" -}}
app.kubernetes.io/name: storestream
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "storestream.labels" -}}
{{ include "storestream.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Whether the page has the chart's token: where config says nothing of one. */}}
{{- define "storestream.defaultToken" -}}
{{- $http := .Values.config.http | default dict -}}
{{- if or (not (hasKey $http "token")) (kindIs "invalid" $http.token) }}true{{ end -}}
{{- end -}}

{{/* The configuration: config, with the port that the chart exposes, the names of its Service, and a token. */}}
{{- define "storestream.config" -}}
{{- $name := include "storestream.name" . -}}
{{- $inNamespace := printf "%s.%s" $name .Release.Namespace -}}
{{- $config := deepCopy .Values.config -}}
{{- $http := $config.http | default dict -}}
{{- $own := list $name $inNamespace (printf "%s.svc" $inNamespace) (printf "%s.svc.cluster.local" $inNamespace) -}}
{{- $_ := set $http "listen" ":8080" -}}
{{- $_ := set $http "hosts" (concat $own ($http.hosts | default list)) -}}
{{- if include "storestream.defaultToken" . -}}
{{- $_ := set $http "token" "file:/etc/storestream/secrets/storestream/http-token" -}}
{{- end -}}
{{- $_ := set $config "http" $http -}}
{{- toYaml $config -}}
{{- end -}}

{{/* The Secrets or ConfigMaps that paths of the configuration name: {kind: secrets, root: $} */}}
{{- define "storestream.named" -}}
{{- $names := list -}}
{{- range regexFindAll (printf "/etc/storestream/%s/[a-z0-9.-]+" .kind) (include "storestream.config" .root) -1 -}}
{{- $names = append $names (base .) -}}
{{- end -}}
{{- $names | uniq | sortAlpha | join "," -}}
{{- end -}}

{{- define "storestream.secrets" -}}
{{- include "storestream.named" (dict "kind" "secrets" "root" .) -}}
{{- end -}}

{{- define "storestream.configMaps" -}}
{{- include "storestream.named" (dict "kind" "configmaps" "root" .) -}}
{{- end -}}

{{/* A size in MiB: of 64MiB, 2GiB, 1024KiB, or as Kubernetes writes them, 64Mi, 2Gi. */}}
{{- define "storestream.mib" -}}
{{- $number := regexFind "^[0-9]+" . | int -}}
{{- if contains "G" . }}{{ mul $number 1024 }}{{ else if contains "K" . }}{{ div $number 1024 }}{{ else }}{{ $number }}{{ end -}}
{{- end -}}

{{/* How many resources GOMEMLIMIT leaves poll.memory for: fullResources, or all that are enabled. */}}
{{- define "storestream.fullResources" -}}
{{- $enabled := 5 -}}
{{- range $name, $resource := .Values.config.resources -}}
{{- if not (dig "enabled" true $resource) -}}{{- $enabled = sub $enabled 1 -}}{{- end -}}
{{- end -}}
{{- min $enabled .Values.fullResources -}}
{{- end -}}

{{- define "storestream.goMemLimit" -}}
{{- $limit := include "storestream.mib" .Values.resources.limits.memory | int -}}
{{- if .Values.goMemLimit -}}
{{- if ge (include "storestream.mib" .Values.goMemLimit | int) $limit -}}
{{- fail (printf "goMemLimit of %s leaves nothing of resources.limits.memory, %s, for poll.memory, sweep.memory and what is not Go's: lower it, or leave it out and the chart reckons it" .Values.goMemLimit .Values.resources.limits.memory) -}}
{{- end -}}
{{- .Values.goMemLimit -}}
{{- else -}}
{{- $poll := include "storestream.mib" (dig "poll" "memory" "128MiB" .Values.config) | int -}}
{{- $sweep := include "storestream.mib" (dig "sweep" "memory" "128MiB" .Values.config) | int -}}
{{- $full := include "storestream.fullResources" . | int -}}
{{- $left := sub (sub $limit (div $limit 10)) (add $sweep (mul $full $poll)) -}}
{{- if lt $left 128 -}}
{{- fail (printf "resources.limits.memory of %s leaves %dMiB for GOMEMLIMIT when a tenth, sweep.memory and poll.memory for %d resources (fullResources) are taken from it, expected 128MiB: raise it, lower config.sweep.memory or config.poll.memory, or set goMemLimit" .Values.resources.limits.memory $left $full) -}}
{{- end -}}
{{- $left }}MiB
{{- end -}}
{{- end -}}

{{- define "storestream.scheme" -}}
{{- if dig "http" "tls" "cert_file" "" .Values.config }}HTTPS{{ else }}HTTP{{ end -}}
{{- end -}}

{{/* A command by a schedule: {command: verify, values: .Values.verify, deadline: seconds, root: $}. A CronJob's
     name has at most 52 letters. */}}
{{- define "storestream.cronJob" -}}
{{- if .values.enabled -}}
apiVersion: batch/v1
kind: CronJob
metadata:
  name: {{ include "storestream.name" .root | trunc 45 | trimSuffix "-" }}-{{ .command }}
  labels: {{ include "storestream.labels" .root | nindent 4 }}
spec:
  schedule: {{ .values.schedule | quote }}
  concurrencyPolicy: Forbid
  successfulJobsHistoryLimit: 1
  failedJobsHistoryLimit: 3
  jobTemplate:
    spec:
      # It fails by the command's exit status. To do it again would read everything again and find the same; only
      # a pod that Kubernetes takes away (a node is drained) is replaced.
      backoffLimit: 0
      podFailurePolicy:
        rules:
          - {action: Ignore, onPodConditions: [{type: DisruptionTarget}]}
      activeDeadlineSeconds: {{ .deadline }}
      template:
        metadata:
          labels: {{ include "storestream.labels" .root | nindent 12 }}
            app.kubernetes.io/component: {{ .command }}
        spec:
          {{- include "storestream.podSpec" .root | nindent 10 }}
          restartPolicy: Never
          containers:
            - name: {{ .command }}
              args: [{{ .command }}]
              {{- include "storestream.container" .root | nindent 14 }}
{{- end -}}
{{- end -}}

{{/* What the pods of the Deployment, of the test and of the CronJobs have in common. */}}
{{- define "storestream.podSpec" -}}
serviceAccountName: {{ include "storestream.name" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  {{- with .Values.user }}
  runAsUser: {{ int . }}
  runAsGroup: {{ int . }}
  fsGroup: {{ int . }}
  {{- end }}
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: scratch # sweep.scratch
    emptyDir: {}
  - name: config
    configMap: {name: {{ include "storestream.name" . }}}
  {{- range $i, $name := include "storestream.secrets" . | splitList "," | compact }}
  - name: secret-{{ $i }}
    secret: {secretName: {{ $name }}, defaultMode: 0440}
  {{- end }}
  {{- range $i, $name := include "storestream.configMaps" . | splitList "," | compact }}
  - name: configmap-{{ $i }}
    configMap: {name: {{ $name }}}
  {{- end }}
{{- end -}}

{{- define "storestream.container" -}}
image: {{ required "image: expected registry/name:tag or registry/name@sha256:..., such as registry.example/storestream:1.0.0" .Values.image }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
env:
  # For commands that somebody gives in the pod, too.
  - {name: STORESTREAM_CONFIG, value: /etc/storestream/config/storestream.yaml}
  - {name: GOMEMLIMIT, value: {{ include "storestream.goMemLimit" . }}}
  {{- range $name, $value := .Values.env }}
  {{- if kindIs "map" $value }}
  - {name: {{ $name }}, valueFrom: {{ toJson $value }}}
  {{- else if contains "@" $value }}
  {{- fail (printf "env.%s holds a login, which everybody may read who may read the Deployment: put the value into a Secret, and set {secretKeyRef: {name: NAME, key: KEY}} in its place" $name) }}
  {{- else }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
  {{- end }}
  {{- end }}
resources: {{ toYaml .Values.resources | nindent 2 }}
volumeMounts:
  - {name: scratch, mountPath: /var/tmp}
  - {name: config, mountPath: /etc/storestream/config, readOnly: true}
  {{- range $i, $name := include "storestream.secrets" . | splitList "," | compact }}
  - {name: secret-{{ $i }}, mountPath: /etc/storestream/secrets/{{ $name }}, readOnly: true}
  {{- end }}
  {{- range $i, $name := include "storestream.configMaps" . | splitList "," | compact }}
  - {name: configmap-{{ $i }}, mountPath: /etc/storestream/configmaps/{{ $name }}, readOnly: true}
  {{- end }}
{{- end -}}
