import { apiVersionOf, type ResourceType } from '@tenon/api'
import type { Clock, HttpHandler, Logger, Random, Secret } from '@tenon/runtime'
import type { LocalApi, ResourceDefinition } from '../../contract.ts'
import { allGates, type KubernetesGates, podGroupKind } from '../../pod-group-kind.ts'
import { builtinDefinitions } from '../../schema/index.ts'
import { type Retention, type SavedState, Store } from '../../storage/index.ts'
import { type CallWebhook, noWebhooks } from '../admission/webhook-calls.ts'
import { Authenticator } from '../authentication/authentication.ts'
import { Authorizer } from '../authorization/authorizer.ts'
import { createStartRoles } from '../authorization/start-roles.ts'
import type { ServerContext } from '../context.ts'
import { serveCustomResources } from '../kinds/custom-resources.ts'
import { expireEvents } from '../event-expiry.ts'
import { createHandler } from './handler.ts'
import { QuotaLedger } from '../limits/quota-ledger.ts'
import { InProcessApi } from '../local-api.ts'
import { Registry } from '../kinds/registry.ts'
import { TokenSigner } from '../authentication/service-account-tokens.ts'
import { createStartObjects, type Endpoint, publishEndpoint } from '../start-objects.ts'
import type { User } from '../authentication/user.ts'

const resourceQuotaType: ResourceType = {
  group: '',
  version: 'v1',
  kind: 'ResourceQuota',
  plural: 'resourcequotas',
  namespaced: true,
}

export interface ApiServerOptions {
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  /** Bearer token of the administrator. */
  readonly adminToken: Secret
  /** PEM of the P-256 private key that signs service account tokens. */
  readonly signingKey: Secret
  /** Reported version; default `v1.34.1`. */
  readonly gitVersion?: string
  /** History that is kept for watches and paged lists. */
  readonly retention?: Retention
  /** State of an earlier run. */
  readonly initial?: SavedState
  /** Kinds that are served besides those of CRDs; default: all built-in kinds. */
  readonly definitions?: readonly ResourceDefinition[]
  /** Whether writes other than apply record field ownership (`metadata.managedFields`); default: true. */
  readonly recordsOwners?: boolean
  /**
   * Whether pods are refused for a ServiceAccount that does not exist, and by the Pod Security Standards; default: true.
   * Facts about a cluster contain neither accounts nor security contexts.
   */
  readonly checksPods?: boolean
  /** Feature gates of Kubernetes; default: on. */
  readonly featureGates?: Partial<KubernetesGates>
  /** Calls admission webhooks with a URL; absent: none of them responds. */
  readonly callWebhook?: CallWebhook
}

/** A Kubernetes API server without a socket. */
export interface ApiServer {
  /** For parts of this process. */
  readonly local: LocalApi
  /** The same API with another field manager. */
  localAs(manager: string): LocalApi
  /** The HTTP API; {@link serveHttps} serves it on a socket. */
  readonly handle: HttpHandler
  readonly store: Store
  /** The user of a request by its headers; `undefined` without valid credentials. */
  authenticate(headers: Readonly<Record<string, string>>): User | undefined
  /** Publishes the address of this server in the cluster. */
  publishEndpoint(endpoint: Endpoint): void
  /** Ends all watches and timers. */
  stop(): void
}

/**
 * Starts an API server: loads the state, serves stored kinds, and creates the default objects of a cluster.
 */
export function createApiServer(options: ApiServerOptions): ApiServer {
  const { clock, random, logger } = options
  const store = new Store({
    clock,
    ...(options.retention === undefined ? {} : { retention: options.retention }),
    ...(options.initial === undefined ? {} : { initial: options.initial }),
  })
  const gates = { ...allGates, ...options.featureGates }
  const definitions = options.definitions ?? builtinDefinitions()
  const registry = new Registry(
    definitions.filter((each) => gates.genericWorkload || apiVersionOf(each) !== apiVersionOf(podGroupKind)),
  )
  const { checksPods = true, recordsOwners = true } = options
  const quotas = new QuotaLedger({ clock, logger, store }, (namespace, name, status) =>
    local.patch(resourceQuotaType, namespace, name, { status }, 'status'),
  )
  const ctx: ServerContext = {
    clock,
    random: random.fork('apiserver'),
    logger,
    store,
    registry,
    quotas,
    recordsOwners,
    checksPods,
    gates,
  }
  serveCustomResources(ctx)
  const signer = new TokenSigner(options.signingKey)
  const authenticator = new Authenticator(ctx, options.adminToken, signer)
  const stopping = new AbortController()
  const stopExpiry = expireEvents(ctx)
  const local = new InProcessApi(ctx, 'kube-controller-manager')
  createStartObjects(local)
  // With its own random source, so that later values do not depend on the number of roles.
  const roles = new InProcessApi({ ...ctx, random: ctx.random.fork('roles') }, 'kube-apiserver')
  if (registry.find('rbac.authorization.k8s.io', 'v1', 'clusterroles') !== undefined) createStartRoles(roles)
  return {
    local,
    localAs: (manager) => new InProcessApi(ctx, manager),
    handle: createHandler(ctx, {
      authenticator,
      authorizer: new Authorizer(ctx),
      signer,
      gitVersion: options.gitVersion ?? 'v1.34.1',
      stopping: stopping.signal,
      callWebhook: options.callWebhook ?? noWebhooks,
    }),
    store,
    authenticate: (headers) => authenticator.authenticate(headers),
    publishEndpoint: (endpoint) => {
      publishEndpoint(local, endpoint)
    },
    stop: () => {
      stopping.abort()
      quotas.stop()
      stopExpiry()
    },
  }
}
