export type { CelExpression } from './bool-expression.ts'
export {
  askDeviceSelector,
  type CompiledDeviceSelector,
  compileDeviceSelector,
  type DeviceSelectorAnswer,
  deviceSelectorProblem,
} from './device-selectors.ts'
export { compileCel, type Compiled, createEnvironment, failureOf, type VariableType } from './environment.ts'
export { childNodes } from './nodes.ts'
export { celQuantity } from './quantities.ts'
export { compileExpression, type RegularExpression } from './regular-expressions.ts'
export { urlError } from './urls.ts'
export { celVersion } from './versions.ts'
