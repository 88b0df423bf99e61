declare module "rapidoc/dist/rapidoc-min.js";
