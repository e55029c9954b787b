import type { Node, Pod } from '@tenon/api'
import { isFinished, isReady, isTerminating } from '../objects/pods.ts'
import type { Service } from '../objects/workloads.ts'

/** An endpoint of an EndpointSlice. */
export interface Endpoint {
  readonly addresses: readonly string[]
  readonly conditions: { readonly ready: boolean; readonly serving: boolean; readonly terminating: boolean }
  readonly hostname?: string
  readonly nodeName?: string
  readonly targetRef: {
    readonly kind: 'Pod'
    readonly namespace: string
    readonly name: string
    readonly uid: string
  }
  readonly zone?: string
}

export interface EndpointPort {
  readonly name: string
  readonly port: number
  readonly protocol: string
  readonly appProtocol?: string
}

/** The endpoint of a pod for a Service, if the pod has an address and has not ended. */
export function endpointOf(service: Service, pod: Pod, node: Node | undefined): Endpoint | undefined {
  const { podIP } = pod.status ?? {}
  if (podIP === undefined || podIP === '' || isFinished(pod)) return undefined
  const serving = isReady(pod)
  const terminating = isTerminating(pod)
  const ready = (serving || service.spec.publishNotReadyAddresses === true) && !terminating
  const zone = node?.metadata.labels?.['topology.kubernetes.io/zone']
  const { hostname, subdomain } = pod.spec as { readonly hostname?: string; readonly subdomain?: string }
  const { namespace = '', name, uid = '' } = pod.metadata
  return {
    addresses: [podIP],
    conditions: { ready, serving, terminating },
    ...(hostname !== undefined && subdomain === service.metadata.name && { hostname }),
    ...(pod.spec.nodeName !== undefined && { nodeName: pod.spec.nodeName }),
    targetRef: { kind: 'Pod', namespace, name, uid },
    ...(zone !== undefined && { zone }),
  }
}

/** Whether all pods of a Service have the same ports, so that they are computed once. */
export function hasFixedPorts(service: Service): boolean {
  return (service.spec.ports ?? []).every(({ targetPort }) => typeof targetPort !== 'string')
}

/** The ports of a Service on a pod; a named target port is looked up in its containers. */
export function portsOf(service: Service, pod: Pod): EndpointPort[] {
  const ports: EndpointPort[] = []
  for (const { name, port, protocol = 'TCP', appProtocol, targetPort } of service.spec.ports ?? []) {
    const number = typeof targetPort === 'string' ? namedPort(pod, targetPort, protocol) : targetPort || port
    if (number === undefined) continue
    ports.push({
      name: name ?? '',
      port: number,
      protocol,
      ...(appProtocol !== undefined && { appProtocol }),
    })
  }
  return ports
}

function namedPort(pod: Pod, name: string, protocol: string): number | undefined {
  for (const container of pod.spec.containers) {
    const found = container.ports?.find((each) => each.name === name && (each.protocol ?? 'TCP') === protocol)
    if (found !== undefined) return found.containerPort
  }
  return undefined
}
