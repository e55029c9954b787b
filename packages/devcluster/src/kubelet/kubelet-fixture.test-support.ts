import { kinds, type Node, type Pod, type PodSpec, type ResourceList } from '@tenon/api'
import { SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import type { KubeletHandle, KubeletSpec, LocalApi } from '../contract.ts'
import { createTestApiServer } from '../apiserver/api-server.test-support.ts'
import { complete } from '../scheduler/scheduling-fixture.test-support.ts'
import { createKubelets, type Kubelets } from './kubelets.ts'
import type { KubeletSettings } from './settings.ts'

/** Delays that make the instants in tests easy to tell: everything takes one second. */
const steady: Partial<KubeletSettings> = {
  readyDelay: [3000, 3000],
  pullDelay: [1000, 1000],
  startDelay: [1000, 1000],
  initRunTime: [1000, 1000],
  stopDelay: [2000, 2000],
  attachDelay: [1000, 1000],
  detachDelay: [1000, 1000],
}

interface PodOptions extends Partial<PodSpec> {
  readonly activeDeadlineSeconds?: number
  readonly readinessGates?: readonly { readonly conditionType: string }[]
  readonly annotations?: Readonly<Record<string, string>>
  readonly labels?: Readonly<Record<string, string>>
  readonly ownerKind?: string
  readonly requests?: ResourceList
}

interface PodStatusView {
  readonly phase?: string
  readonly reason?: string
  readonly message?: string
  readonly hostIP?: string
  readonly podIP?: string
  readonly conditions?: readonly {
    readonly type: string
    readonly status: string
    readonly reason?: string
  }[]
  readonly containerStatuses?: readonly {
    readonly ready: boolean
    readonly restartCount: number
    readonly state: Readonly<Record<string, { readonly reason?: string; readonly exitCode?: number }>>
  }[]
}

/** Kubelets alone, on virtual time; pods are made already bound. */
export class KubeletFixture {
  readonly clock: VirtualClock
  readonly api: LocalApi
  readonly kubelets: Kubelets

  /** @param before a run whose cluster goes on; default: a new cluster. */
  constructor(settings: Partial<KubeletSettings> = {}, before?: KubeletFixture) {
    this.clock = before?.clock ?? new VirtualClock()
    this.api = before?.api ?? createTestApiServer({ clock: this.clock }).local
    const { api, clock } = this
    const random = new SeededRandom(1)
    this.kubelets = createKubelets({
      api,
      clock,
      random,
      logger: silentLogger,
      settings: { ...steady, ...settings },
    })
  }

  kubelet(nodeName = 'a', change: Partial<KubeletSpec> = {}): KubeletHandle {
    return this.kubelets.start({
      nodeName,
      providerId: `test://${nodeName}`,
      labels: { 'topology.kubernetes.io/zone': '1', pool: 'x' },
      taints: [],
      capacity: { cpu: '4', memory: '8Gi', pods: '110' },
      allocatable: { cpu: '3800m', memory: '7Gi', pods: '110' },
      addresses: [{ type: 'InternalIP', address: '192.0.2.1' }],
      kubeletVersion: 'v1.36.0',
      systemUuid: '0b0e7a3e-0000-4000-8000-000000000001',
      ...change,
    })
  }

  pod(name: string, options: PodOptions = {}): void {
    const { annotations, labels, ownerKind, requests, ...spec } = options
    const owner = {
      apiVersion: 'batch/v1',
      kind: ownerKind ?? '',
      name: 'owner',
      uid: 'owner',
      controller: true,
    }
    const pod: Pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name,
        namespace: 'default',
        ...(annotations && { annotations }),
        ...(labels && { labels }),
        ...(ownerKind && { ownerReferences: [owner] }),
      },
      spec: {
        containers: [{ name: 'main', image: 'app', ...(requests && { resources: { requests } }) }],
        nodeName: 'a',
        ...spec,
      },
    }
    this.api.create(kinds.pod, complete(pod))
  }

  node(name = 'a'): Node | undefined {
    return this.api.get(kinds.node, undefined, name)
  }

  ready(name = 'a'): string | undefined {
    return this.node(name)?.status?.conditions?.find((one) => one.type === 'Ready')?.status
  }

  status(name: string): PodStatusView {
    return (this.api.get(kinds.pod, 'default', name)?.status ?? {}) as PodStatusView
  }

  /** Phase and, unless the containers run, what they wait for or how they ended. */
  brief(name: string): string {
    const { phase, containerStatuses } = this.status(name)
    const state = containerStatuses?.[0]?.state ?? {}
    const [kind = '', detail] = Object.entries(state)[0] ?? []
    return [phase, kind, detail?.reason].filter((part) => part !== undefined && part !== '').join(' ')
  }

  async seconds(count: number): Promise<void> {
    await this.clock.advance(count * 1000)
  }
}
