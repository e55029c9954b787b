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

/** What a joining instance must have been told. */
export interface JoinTarget {
  /** Whether instances reach the API server under `https://host:port`. */
  readonly isEndpoint: (url: string) => boolean
  /** PEM. */
  readonly certificateAuthority: string
}

/**
 * Lets instances in whose endpoint, authority and bootstrap token are right, and starts their kubelets;
 * the token counts for the first time only.
 */
export function createJoiner(
  server: Pick<ApiServer, 'authenticate'>,
  kubelets: KubeletRunner,
  target: JoinTarget,
): NodeJoiner {
  const running = new Map<string, KubeletHandle>()
  /** Instances that have joined keep a certificate of their own on their disks, so that they survive a reboot. */
  const certified = new Set<string>()
  const start = (spec: KubeletSpec) => {
    running.get(spec.nodeName)?.stop()
    const kubelet = kubelets.start(spec)
    running.set(spec.nodeName, kubelet)
    certified.add(spec.providerId)
    return kubelet
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
