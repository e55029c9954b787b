/**
 * Creates the objects that Kueue's provisioning controller creates, and follows requests as it does (gangs.md
 * 2.5).
 */
import { type Cluster, type TestObject, until } from './cluster.ts'

const requestApi = 'autoscaling.x-k8s.io/v1'
const workloadApi = 'kueue.x-k8s.io/v1beta2'
const namespace = 'default'
const managed = { 'kueue.x-k8s.io/managed': 'true' }

const atomicClass = 'best-effort-atomic-scale-up.autoscaling.x-k8s.io'
export const checkClass = 'check-capacity.autoscaling.x-k8s.io'

/** A pod set of a Workload. */
interface PodSetParts {
  readonly name: string
  readonly count: number
  readonly cpu: string
  /** Of the flavour that the Workload was assigned. */
  readonly nodeSelector?: Readonly<Record<string, string>>
  readonly tolerations?: readonly object[]
}

export interface WorkloadParts {
  readonly podSets: readonly PodSetParts[]
  readonly className?: string
  readonly parameters?: Readonly<Record<string, string>>
  /** `retryStrategy.backoffLimitCount` of the ProvisioningRequestConfig. */
  readonly backoffLimitCount?: number
}

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

/** Annotations that let pods use the capacity of a request. */
export const annotationKeys = {
  now: 'autoscaling.x-k8s.io',
  /** Keys of Kueue before 0.11. */
  before: 'cluster-autoscaler.kubernetes.io',
} as const

/** Installs the kind Workload, so that the garbage collector knows the owner of requests. */
export async function installWorkloads(cluster: Cluster): Promise<void> {
  await cluster.create({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'workloads.kueue.x-k8s.io' },
    spec: {
      group: 'kueue.x-k8s.io',
      scope: 'Namespaced',
      names: { kind: 'Workload', plural: 'workloads', singular: 'workload', shortNames: ['wl'] },
      versions: [
        {
          name: 'v1beta2',
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  })
  await until('Workloads are served', 20, async () => {
    const found = await cluster.get(
      'apiextensions.k8s.io/v1',
      'CustomResourceDefinition',
      'workloads.kueue.x-k8s.io',
    )
    return found?.status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True')
  })
}

/** A Workload whose admission check is a ProvisioningRequest. */
export class KueueWorkload {
  /** Messages of the Workload's check, each once, in order. */
  readonly messages: string[] = []
  readonly #cluster: Cluster
  readonly #name: string
  readonly #parts: WorkloadParts
  #uid = ''
  #attempt = 0

  private constructor(cluster: Cluster, name: string, parts: WorkloadParts) {
    this.#cluster = cluster
    this.#name = name
    this.#parts = parts
  }

  /** Creates the Workload, which has quota at once, and its first request. */
  static async submit(cluster: Cluster, name: string, parts: WorkloadParts): Promise<KueueWorkload> {
    const workload = new KueueWorkload(cluster, name, parts)
    const { metadata } = await cluster.create({
      apiVersion: workloadApi,
      kind: 'Workload',
      metadata: { name, namespace },
      spec: { podSets: parts.podSets },
    })
    workload.#uid = metadata?.uid ?? ''
    await workload.#request()
    return workload
  }

  get requestName(): string {
    return `${this.#name}-prov-${this.#attempt}`
  }

  get attempt(): number {
    return this.#attempt
  }

  /**
   * Follows requests until the check is Ready or Rejected: a failed one is deleted with its templates, as the
   * Workload is evicted, and the next one is created.
   */
  async settled(seconds: number): Promise<'Ready' | 'Rejected'> {
    return await until(
      `the check of ${this.#name} is settled: ${this.messages.join(' | ')}`,
      seconds,
      async () => {
        const conditions = await this.conditions()
        const isTrue = (type: string) =>
          conditions.some((each) => each.type === type && each.status === 'True')
        if (isTrue('Failed') || isTrue('BookingExpired')) {
          if (this.#attempt > (this.#parts.backoffLimitCount ?? 3)) return 'Rejected'
          await this.#cluster.delete(requestApi, 'ProvisioningRequest', this.requestName, namespace)
          await this.#request()
          return false
        }
        if (isTrue('CapacityRevoked')) return 'Rejected'
        if (isTrue('Provisioned')) return 'Ready'
        const said = conditions.find(({ type }) => type === 'Provisioned')?.message
        if (said !== undefined && this.messages.at(-1) !== said) this.messages.push(said)
        return false
      },
    )
  }

  async conditions(): Promise<readonly Condition[]> {
    const found = await this.#cluster.get(requestApi, 'ProvisioningRequest', this.requestName, namespace)
    return (found?.status?.conditions ?? []) as readonly Condition[]
  }

  /** `Status/Reason` of a condition, or `absent`. */
  async state(type: string): Promise<string> {
    const found = (await this.conditions()).find((condition) => condition.type === type)
    return found === undefined ? 'absent' : `${found.status}/${found.reason}`
  }

  async untilState(type: string, wanted: string, seconds: number): Promise<void> {
    let last = ''
    try {
      await until(`${this.requestName} is ${type}=${wanted}`, seconds, async () => {
        last = JSON.stringify(await this.conditions())
        return (await this.state(type)) === wanted
      })
    } catch (error) {
      throw new Error(`${this.requestName}: ${last}`, { cause: error })
    }
  }

  /** The pods of the Job, once it is not suspended any more. */
  async pods(count?: number, keys: string = annotationKeys.now): Promise<readonly string[]> {
    const names: string[] = []
    for (const set of this.#parts.podSets)
      for (let at = 0; at < (count ?? set.count); at++) {
        const name = `${this.#name}-${set.name}-${at}`
        names.push(name)
        await this.#cluster.create({
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: {
            name,
            namespace,
            labels: { ...managed, 'kueue.x-k8s.io/podset': set.name, workload: this.#name },
            annotations: {
              [`${keys}/consume-provisioning-request`]: this.requestName,
              [`${keys}/provisioning-class-name`]: this.#className,
            },
          },
          spec: { ...podSpec(set, 'registry.k8s.io/pause:3.10') },
        })
      }
    return names
  }

  async boundPods(): Promise<number> {
    const pods = await this.#cluster.list('v1', 'Pod', namespace, `workload=${this.#name}`)
    return pods.filter(({ spec }) => (spec?.nodeName ?? '') !== '').length
  }

  /**
   * Finishes or deletes the Workload: the garbage collector deletes what it owns. Its pods use their capacity
   * until they are gone.
   */
  async end(): Promise<void> {
    const pods = () => this.#cluster.list('v1', 'Pod', namespace, `workload=${this.#name}`)
    for (const { metadata } of await pods())
      await this.#cluster.delete('v1', 'Pod', metadata?.name ?? '', namespace)
    await until(`the pods of ${this.#name} are gone`, 60, async () => (await pods()).length === 0)
    await this.#cluster.delete(workloadApi, 'Workload', this.#name, namespace)
  }

  get #className(): string {
    return this.#parts.className ?? atomicClass
  }

  /** The templates first, as the request refers to them. */
  async #request(): Promise<void> {
    this.#attempt++
    const { parameters, podSets } = this.#parts
    const name = this.requestName
    const templateOf = (set: PodSetParts) => `ppt-${name}-${set.name}`
    for (const set of podSets) await this.#cluster.create(podTemplate(templateOf(set), set))
    const { metadata } = await this.#cluster.create({
      apiVersion: requestApi,
      kind: 'ProvisioningRequest',
      metadata: {
        name,
        namespace,
        labels: managed,
        ownerReferences: [
          {
            apiVersion: workloadApi,
            kind: 'Workload',
            name: this.#name,
            uid: this.#uid,
            controller: true,
            blockOwnerDeletion: true,
          },
        ],
      },
      spec: {
        provisioningClassName: this.#className,
        podSets: podSets.map((set) => ({ podTemplateRef: { name: templateOf(set) }, count: set.count })),
        ...(parameters && { parameters }),
      },
    })
    const owner = { apiVersion: requestApi, kind: 'ProvisioningRequest', name, uid: metadata?.uid ?? '' }
    for (const set of podSets)
      await this.#cluster.patch({
        apiVersion: 'v1',
        kind: 'PodTemplate',
        metadata: { name: templateOf(set), namespace, ownerReferences: [owner] },
      })
  }
}

function podTemplate(name: string, set: PodSetParts): TestObject & { readonly template: object } {
  return {
    apiVersion: 'v1',
    kind: 'PodTemplate',
    metadata: { name, namespace, labels: managed },
    template: { metadata: {}, spec: podSpec(set) },
  }
}

/** A template of Kueue has the containers of the Job, the labels of the flavour as selectors and its tolerations. */
function podSpec(
  { cpu, nodeSelector, tolerations }: PodSetParts,
  image = 'registry.k8s.io/pause:3.10',
): object {
  return {
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 0,
    ...(nodeSelector && { nodeSelector }),
    ...(tolerations && { tolerations }),
    containers: [{ name: 'c', image, resources: { requests: { cpu, memory: '64Mi' } } }],
  }
}
