/** What the guided demonstration applies, in the order of its chapters. */

const systemPod = (
  name: string,
  replicas: number,
  cpu: string,
  memory: string,
  isSpread: boolean,
): string => `
apiVersion: apps/v1
kind: Deployment
metadata: { name: ${name}, namespace: kube-system }
spec:
  replicas: ${replicas}
  selector: { matchLabels: { k8s-app: ${name} } }
  template:
    metadata: { labels: { k8s-app: ${name} } }
    spec:${isSpread ? apart(name) : ''}
      containers:
        - name: ${name}
          image: registry.k8s.io/${name}
          resources: { requests: { cpu: ${cpu}, memory: ${memory} } }
`

const apart = (name: string): string => `
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector: { matchLabels: { k8s-app: ${name} } }`

/** What SKS puts into `kube-system` of a new cluster. */
export const systemPods: string = [
  systemPod('calico-kube-controllers', 1, '50m', '64Mi', false),
  systemPod('coredns', 2, '100m', '70Mi', true),
  systemPod('konnectivity-agent', 2, '50m', '64Mi', true),
  systemPod('metrics-server', 1, '100m', '200Mi', false),
].join('---')

export const nodeClass = `
apiVersion: karpenter.exoscale.com/v1
kind: ExoscaleNodeClass
metadata:
  name: standard
spec:
  imageTemplateSelector: {}
  diskSize: 50
  securityGroupSelectorTerms:
    - name: sks-nodes
`

export const nodePool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: standard
spec:
  template:
    spec:
      nodeClassRef:
        group: karpenter.exoscale.com
        kind: ExoscaleNodeClass
        name: standard
      requirements:
        - key: node.kubernetes.io/instance-type
          operator: In
          values: [standard.medium, standard.large, standard.extra-large]
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 3s
    budgets:
      - nodes: 100%
  limits:
    cpu: 100
`

/** The workload; applied again with fewer replicas later. */
export const shop = (replicas: number): string => `
apiVersion: apps/v1
kind: Deployment
metadata: { name: shop, namespace: default }
spec:
  replicas: ${replicas}
  selector: { matchLabels: { app: shop } }
  template:
    metadata: { labels: { app: shop } }
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: shop
          image: registry.k8s.io/pause
          resources: { requests: { cpu: "1", memory: 1Gi } }
`

export const gpuClassAndPool = `
apiVersion: karpenter.exoscale.com/v1
kind: ExoscaleNodeClass
metadata:
  name: gpu
spec:
  imageTemplateSelector:
    variant: nvidia
  diskSize: 100
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: gpu
spec:
  template:
    spec:
      nodeClassRef:
        group: karpenter.exoscale.com
        kind: ExoscaleNodeClass
        name: gpu
      requirements:
        - key: exoscale.com/instance-family
          operator: In
          values: [gpua30, gpu3]
      taints:
        - key: nvidia.com/gpu
          value: "true"
          effect: NoSchedule
  disruption:
    consolidationPolicy: WhenEmpty
    consolidateAfter: 2s
    budgets:
      - nodes: 100%
`

export const gpuJob = `
apiVersion: batch/v1
kind: Job
metadata: { name: training, namespace: default }
spec:
  template:
    metadata:
      labels: { app: training }
      annotations: { tenon.sh/run-seconds: "4" }
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      tolerations:
        - key: nvidia.com/gpu
          operator: Exists
      containers:
        - name: training
          image: registry.k8s.io/pause
          resources: { limits: { nvidia.com/gpu: "1" } }
`
