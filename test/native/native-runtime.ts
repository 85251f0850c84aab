/** Folder of onnxruntime-node, which `npm run check:native` passes to the tests. */
export const nativeRuntime = process.env.WB_NATIVE_RUNTIME!
