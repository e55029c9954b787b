import { kinds, type Node } from '@tenon/api'
import { ApiError, type LocalApi } from '@tenon/devcluster'
import type { CloudContext } from './zone/cloud-state.ts'
import type { Instance } from './instances/instance.ts'
import { addressesOf } from './instances/guest-boot.ts'

const uninitializedTaint = 'node.cloudprovider.kubernetes.io/uninitialized'
const providerPrefix = 'exoscale://'
const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/**
 * The cluster's cloud controller manager: writes cloud data to Nodes, and deletes Nodes whose instance is gone. Checks
 * a node whenever it changes, and all of them periodically.
 */
export class CloudController {
  readonly #context: CloudContext
  readonly #api: LocalApi
  #unsubscribe: (() => void) | undefined

  constructor(context: CloudContext, api: LocalApi) {
    this.#context = context
    this.#api = api
  }

  start(): void {
    const look = (node: Node) => {
      this.#keep(node.metadata.name)
    }
    this.#unsubscribe = this.#api.subscribe(kinds.node, { added: look, updated: look })
    this.#schedule()
  }

  stop(): void {
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
  }

  #schedule(): void {
    const { clock, settings } = this.#context
    clock.after(settings.cloudControllerPeriodMs, () => {
      for (const node of this.#api.list(kinds.node)) this.#keep(node.metadata.name)
      this.#schedule()
    })
  }

  /** Updates one node from its instance; a refused write is retried in the next pass. */
  #keep(name: string): void {
    const node = this.#api.get(kinds.node, undefined, name)
    const id = node && instanceIdOf(node)
    if (node === undefined || id === undefined || node.metadata.deletionTimestamp !== undefined) return
    const instance = this.#context.state.instances.get(id)
    try {
      if (instance === undefined) this.#deleteUnready(node)
      else this.#describe(node, instance)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      this.#context.logger.debug('cloud controller could not write a node', { node: name, error })
    }
  }

  #deleteUnready(node: Node): void {
    const ready = node.status?.conditions?.find((condition) => condition.type === 'Ready')
    if (ready?.status === 'True') return
    const { name, uid } = node.metadata
    this.#context.logger.info('deleting a node whose instance is gone', { node: name })
    this.#api.delete(kinds.node, undefined, name, uid === undefined ? {} : { preconditionUid: uid })
  }

  #describe(node: Node, instance: Instance): void {
    const { name } = node.metadata
    const addresses = addressesOf(instance)
    if (!sameAddresses(node.status?.addresses ?? [], addresses)) {
      this.#api.patch(kinds.node, undefined, name, { status: { addresses } }, 'status')
    }
    const taints = node.spec?.taints ?? []
    const left = taints.filter((taint) => taint.key !== uninitializedTaint)
    if (left.length === taints.length) return
    const { zone } = this.#context.state
    this.#api.patch(kinds.node, undefined, name, {
      metadata: {
        labels: {
          'topology.kubernetes.io/zone': zone,
          'topology.kubernetes.io/region': zone,
          'node.kubernetes.io/instance-type': instance.type.name,
        },
      },
      spec: { providerID: `${providerPrefix}${instance.id}`, taints: left.length === 0 ? null : left },
    })
  }
}

interface Address {
  readonly type: string
  readonly address: string
}

function sameAddresses(a: readonly Address[], b: readonly Address[]): boolean {
  return (
    a.length === b.length &&
    a.every(({ type, address }, index) => b[index]?.type === type && b[index].address === address)
  )
}

/**
 * The instance of a node: by provider ID, else by system UUID while it is uninitialized; undefined for foreign nodes.
 */
function instanceIdOf(node: Node): string | undefined {
  const providerId = node.spec?.providerID ?? ''
  const systemUuid = node.status?.nodeInfo?.['systemUUID'] ?? ''
  if (providerId !== '' && !providerId.startsWith(providerPrefix)) return undefined
  // A kubelet without an external cloud provider belongs to another cloud, or to none.
  const isWaiting = (node.spec?.taints ?? []).some(({ key }) => key === uninitializedTaint)
  if (providerId === '' && !isWaiting) return undefined
  const id = providerId === '' ? systemUuid.toLowerCase() : providerId.slice(providerPrefix.length)
  return uuidPattern.test(id) ? id : undefined
}
