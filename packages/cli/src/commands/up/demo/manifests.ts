/** Manifests of the demonstration, besides the cloud's node classes and NodePools. */

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

/** The usual pods of `kube-system`. */
export const systemPods: string = [
  systemPod('calico-kube-controllers', 1, '50m', '64Mi', false),
  systemPod('coredns', 2, '100m', '70Mi', true),
  systemPod('konnectivity-agent', 2, '50m', '64Mi', true),
  systemPod('metrics-server', 1, '100m', '200Mi', false),
].join('---')

/** The workload; later applied again with fewer replicas. */
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

/** Runs on the NodePool `gpu`. */
export const gpuJob: string = job(
  'training',
  `
      tolerations:
        - key: nvidia.com/gpu
          operator: Exists`,
  '{ limits: { nvidia.com/gpu: "1" } }',
)

/** Runs on the NodePool `team`. */
export const teamJob: string = job(
  'report',
  `
      nodeSelector:
        team: platform
      tolerations:
        - key: team
          value: platform`,
  '{ requests: { cpu: "1", memory: 1Gi } }',
)

function job(name: string, placement: string, resources: string): string {
  return `
apiVersion: batch/v1
kind: Job
metadata: { name: ${name}, namespace: default }
spec:
  template:
    metadata:
      labels: { app: ${name} }
      annotations: { tenon.sh/run-seconds: "4" }
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1${placement}
      containers:
        - name: ${name}
          image: registry.k8s.io/pause
          resources: ${resources}
`
}
