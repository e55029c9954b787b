export type * from './objects.ts'
export { apiVersionOf, kinds, pathOf, type ResourceType } from './resources.ts'
