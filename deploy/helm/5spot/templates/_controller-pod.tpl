{{/* The pod template of the controller, for its Deployment and its StatefulSet. */}}
{{- define "5spot.controllerPod" -}}
{{- with .Values.controller -}}
metadata:
  labels:
    app: 5spot-controller
  annotations:
    # Restarts the pods when their configuration changes.
    checksum/config: {{ include "5spot.config" $ | sha256sum }}
    {{- with .podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: 5spot-controller
  {{- with $.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if ne .layout "single" }}
  # Prefer different nodes and zones.
  topologySpreadConstraints:
    {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - maxSkew: 1
      topologyKey: {{ $key }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          app: 5spot-controller
      {{- if eq $.Values.controller.layout "ha" }}
      # Without the pods of the old version, which end during an update.
      matchLabelKeys: [pod-template-hash]
      {{- end }}
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    seccompProfile:
      type: RuntimeDefault
  # The controller exits within two seconds after SIGTERM.
  terminationGracePeriodSeconds: 10
  {{- with .priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .affinity }}
  affinity:
    {{- toYaml .affinity | nindent 4 }}
  {{- else if $.Values.agent.enabled }}
  # Prefer nodes that no owner can reclaim.
  affinity:
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 100
          preference:
            matchExpressions:
              - key: 5spot.finos.org/reclaim-agent
                operator: DoesNotExist
  {{- end }}
  containers:
    - name: controller
      image: {{ include "5spot.image" (dict "root" $ "image" .image) }}
      {{- with .image.pullPolicy }}
      imagePullPolicy: {{ . }}
      {{- end }}
      terminationMessagePolicy: FallbackToLogsOnError
      {{- $arguments := list }}
      {{- range .watchNamespaces }}
      {{- $arguments = append $arguments (printf "--watch-namespace=%s" .) }}
      {{- end }}
      {{- with concat $arguments .extraArgs }}
      args:
        {{- toYaml . | nindent 8 }}
      {{- else }}
      args: []
      {{- end }}
      envFrom:
        - configMapRef:
            name: 5spot-config
      env:
        {{- if eq .layout "sharded" }}
        # The number at the end of the pod's name is the instance.
        - name: OPERATOR_INSTANCE_ID
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        {{- end }}
        - name: POD_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        - name: POD_NAMESPACE
          valueFrom:
            fieldRef:
              fieldPath: metadata.namespace
        # Lets `kubectl describe pod` show the events NotReady and Ready.
        - name: POD_UID
          valueFrom:
            fieldRef:
              fieldPath: metadata.uid
      ports:
        - name: metrics
          containerPort: 8080
        - name: health
          containerPort: 8081
      livenessProbe:
        httpGet:
          path: /health
          port: 8081
        initialDelaySeconds: 5
        periodSeconds: 10
      readinessProbe:
        httpGet:
          path: /ready
          port: 8081
        initialDelaySeconds: 5
        periodSeconds: 10
      resources:
        {{- toYaml .resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      {{- with .caBundle }}
      {{- if .configMap }}
      volumeMounts:
        - name: ca-bundle
          mountPath: /etc/ssl/certs/ca-certificates.crt
          subPath: {{ .key }}
          readOnly: true
      {{- end }}
      {{- end }}
  {{- with .caBundle.configMap }}
  volumes:
    - name: ca-bundle
      configMap:
        name: {{ . }}
  {{- end }}
{{- end -}}
{{- end -}}
