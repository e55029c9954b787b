/** Access of administrators to devices that others use, which claims may ask for in certain namespaces only. */
import { ownValue } from '@tenon/api'
import type { FieldError, StoredObject } from '../../contract.ts'
import { keyOf } from '../../storage/index.ts'
import type { ServerContext } from '../context.ts'
import type { Served } from '../kinds/registry.ts'

const namespaceLabel = 'resource.kubernetes.io/admin-access'

interface Request {
  readonly exactly?: { readonly adminAccess?: unknown }
}

interface Requests {
  readonly devices?: { readonly requests?: readonly Request[] }
}

/** Whether a new claim, or a new template of claims, asks for what its namespace is not for. */
export function adminAccessErrors(
  ctx: ServerContext,
  { collection }: Served,
  { metadata, spec }: StoredObject & { readonly spec?: Requests & { readonly spec?: Requests } },
): readonly FieldError[] {
  const asked =
    collection === 'resourceclaims.resource.k8s.io'
      ? spec
      : collection === 'resourceclaimtemplates.resource.k8s.io'
        ? spec?.spec
        : undefined
  const requests = asked?.devices?.requests
  // What is no list is refused by those who look at the whole object.
  const index = Array.isArray(requests)
    ? requests.findIndex(({ exactly }: Request) => exactly?.adminAccess === true)
    : -1
  if (index < 0) return []
  const namespace = ctx.store.collection('namespaces').get(keyOf(undefined, metadata.namespace ?? ''))
  if (ownValue(namespace?.metadata.labels, namespaceLabel) === 'true') return []
  const detail = `admin access to devices requires the \`${namespaceLabel}: true\` label on the containing namespace`
  // Of a template the API server names the same field, and of several requests the first.
  return [{ field: `spec.devices.requests[${index}].adminAccess`, kind: 'forbidden', detail }]
}
