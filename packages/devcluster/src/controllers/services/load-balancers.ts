import type { KubeObject } from '@tenon/api'
import type { ControllerContext } from '../context.ts'
import { keyOf, type ObjectCache, splitKey } from '../loop/object-cache.ts'
import type { Outcome } from '../loop/reconcile-loop.ts'
import { type Service, workloads } from '../objects/workloads.ts'

const component = 'service-controller'
const finalizer = 'service.kubernetes.io/load-balancer-cleanup'
/** Blocks reserved for documentation, where no client reaches anything by mistake. */
const blocks = ['203.0.113', '198.51.100', '192.0.2']
const retryMs = 60_000

/** Simulates the cloud's load balancers: every Service of that type gets an address. */
export function loadBalancers(context: ControllerContext): void {
  const services = context.store.cache(workloads.service)
  const queue = context.loop.queue('load-balancers', (key) => sync(context, services, key))
  services.onChange((now) => {
    if (now !== undefined && (isWanted(now) || isHeld(now))) queue.add(keyOf(now))
  })
}

/** A Service with a class belongs to another load balancer. */
function isWanted({ spec, metadata }: Service): boolean {
  return (
    spec.type === 'LoadBalancer' &&
    (spec.loadBalancerClass ?? '') === '' &&
    metadata.deletionTimestamp === undefined
  )
}

function isHeld({ metadata }: Service): boolean {
  return metadata.finalizers?.includes(finalizer) === true
}

function addressOf(service: Service): string | undefined {
  return service.status?.loadBalancer?.ingress?.[0]?.ip
}

function sync(context: ControllerContext, services: ObjectCache<Service>, key: string): Outcome {
  const { store, events } = context
  const { namespace, name } = splitKey(key)
  const service = store.get(workloads.service, namespace, name)
  if (service === undefined) return undefined
  if (!isWanted(service)) {
    if (isHeld(service)) release(context, service)
    return undefined
  }
  if (addressOf(service) !== undefined && isHeld(service)) return undefined
  events.record(component, service, 'Normal', 'EnsuringLoadBalancer', 'Ensuring load balancer')
  const ip = addressOf(service) ?? freeAddress(service, services)
  if (ip === undefined) {
    const message = 'Error syncing load balancer: no address is left for another load balancer'
    events.record(component, service, 'Warning', 'SyncLoadBalancerFailed', message)
    return { afterMs: retryMs }
  }
  // The finalizer comes first: without it the address would leak when the Service is deleted.
  store.modify(workloads.service, service, (latest) =>
    withFinalizers(latest, [...(latest.metadata.finalizers ?? []), finalizer]),
  )
  const loadBalancer = { ingress: [{ ip, ipMode: 'VIP' }] }
  store.setStatus(workloads.service, service, { ...service.status, loadBalancer })
  events.record(component, service, 'Normal', 'EnsuredLoadBalancer', 'Ensured load balancer')
  return undefined
}

function release({ store, events }: ControllerContext, service: Service): void {
  events.record(component, service, 'Normal', 'DeletingLoadBalancer', 'Deleting load balancer')
  store.setStatus(workloads.service, service, { ...service.status, loadBalancer: {} })
  events.record(component, service, 'Normal', 'DeletedLoadBalancer', 'Deleted load balancer')
  store.modify(workloads.service, service, (latest) =>
    withFinalizers(
      latest,
      (latest.metadata.finalizers ?? []).filter((each) => each !== finalizer),
    ),
  )
}

function withFinalizers<T extends KubeObject>(object: T, finalizers: readonly string[]): T {
  return { ...object, metadata: { ...object.metadata, finalizers: [...new Set(finalizers)] } }
}

/** The requested address if it is free; else the first free one. */
function freeAddress(service: Service, services: ObjectCache<Service>): string | undefined {
  const taken = new Set<string | undefined>()
  for (const other of services.values()) if (other !== service) taken.add(addressOf(other))
  const asked = service.spec.loadBalancerIP ?? ''
  if (asked !== '') return taken.has(asked) ? undefined : asked
  for (const block of blocks) {
    for (let host = 1; host < 255; host++) if (!taken.has(`${block}.${host}`)) return `${block}.${host}`
  }
  return undefined
}
