import type {
  JoinCredentials,
  JoinResult,
  KubeletHandle,
  KubeletRunner,
  KubeletSpec,
  NodeJoiner,
} from './contract.ts'
import type { ApiServer } from './apiserver/index.ts'

const bootstrappers = 'system:bootstrappers'

/** What a joining instance must know. */
export interface JoinTarget {
  /** Whether `https://host:port` is an address of the API server. */
  readonly isEndpoint: (url: string) => boolean
  /** PEM. */
  readonly certificateAuthority: string
}

/** A running instance. */
interface RunningInstance {
  readonly spec: KubeletSpec
  kubelet: KubeletHandle
}

/**
 * Lets instances with the right endpoint, authority and bootstrap token join, and starts their kubelets. The token is
 * only needed the first time.
 */
export function createJoiner(
  server: Pick<ApiServer, 'authenticate'>,
  kubelets: KubeletRunner,
  target: JoinTarget,
): NodeJoiner {
  /** Running instances by node name; only the kubelet of the last one runs. */
  const up = new Map<string, RunningInstance[]>()
  /** Instances that have joined store their own certificate, so that they can rejoin after a reboot. */
  const certified = new Set<string>()
  const start = (spec: KubeletSpec): KubeletHandle => {
    const { nodeName, providerId } = spec
    const before = up.get(nodeName) ?? []
    before.at(-1)?.kubelet.stop()
    const instance: RunningInstance = { spec, kubelet: kubelets.start(spec) }
    up.set(nodeName, [...before.filter((other) => other.spec.providerId !== providerId), instance])
    certified.add(providerId)
    return { nodeName, stop: () => leave(instance) }
  }
  // If two instances have one name, on real hosts both report: when one ends, the other continues.
  const leave = (instance: RunningInstance): void => {
    const { nodeName } = instance.spec
    const guests = up.get(nodeName) ?? []
    if (!guests.includes(instance)) return
    const others = guests.filter((other) => other !== instance)
    up.set(nodeName, others)
    if (guests.at(-1) !== instance) return
    instance.kubelet.stop()
    const next = others.at(-1)
    if (next !== undefined) next.kubelet = kubelets.start(next.spec)
  }
  return {
    resume: start,
    join(credentials: JoinCredentials, spec: KubeletSpec): Promise<JoinResult> {
      const refusal = refusalOf(server, credentials, target, certified.has(spec.providerId))
      if (refusal !== undefined) return Promise.resolve({ kind: 'refused', reason: refusal })
      return Promise.resolve({ kind: 'joined', kubelet: start(spec) })
    },
  }
}

function refusalOf(
  server: Pick<ApiServer, 'authenticate'>,
  credentials: JoinCredentials,
  target: JoinTarget,
  isCertified: boolean,
): string | undefined {
  if (!target.isEndpoint(credentials.endpoint.replace(/\/$/, ''))) {
    return `no API server answers at ${credentials.endpoint}`
  }
  if (credentials.certificateAuthority.trim() !== target.certificateAuthority.trim()) {
    return 'the API server presents a certificate of an authority the instance does not trust'
  }
  if (isCertified) return undefined
  const user = server.authenticate({ authorization: `Bearer ${credentials.bootstrapToken}` })
  if (user === undefined) return 'the API server answers 401: the bootstrap token is unknown or has expired'
  if (!user.groups.some((group) => group.startsWith(bootstrappers))) {
    return `the API server answers 403: ${user.name} may not register nodes`
  }
  return undefined
}
