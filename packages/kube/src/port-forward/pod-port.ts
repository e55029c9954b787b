/** A port of a pod. */
export interface PodPort {
  readonly namespace: string
  readonly pod: string
  readonly port: number
}

/** Path of the subresource, with the port. */
export function portForwardPath({ namespace, pod, port }: PodPort): string {
  const object = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}`
  return `${object}/portforward?ports=${port}`
}
